// An engine that is killed while streams run on the card: how soon the model answers again, and what the driver still counts for the
// process that has ended.

import { Effect, Schedule } from "effect"
import { atLeast, atMost, figure } from "#harness/report/Figure.ts"
import { startLoadClient } from "../support/LoadClient.ts"
import { completionsPath } from "../text/Models.ts"
import { Serials, sizedCompletion, sizedModel, unendingTokens } from "../text/sized/Models.ts"
import { startServed } from "../text/sized/Stage.ts"
import { usedByMib, usedMib } from "./Card.ts"
import {
  answerSeconds,
  type CardSize,
  engineOf,
  type Measure,
  settingsOf,
  threads,
  weightsOf,
} from "./Stage.ts"

export interface KilledPlan {
  readonly size: CardSize
  readonly rounds: number
  readonly streams: number
}

const runMs = 200
const promptTokens = 8
/** Half a minute. */
const mostRetries = 1_500
/** Milliseconds. */
const retryMs = 20

export const killed: Measure<KilledPlan> = (stage, { rounds, size, streams }) =>
  Effect.gen(function* () {
    const weights = (yield* weightsOf(size)).path
    const client = yield* startLoadClient
    const serials = new Serials()
    const beganMs = performance.now()
    const { gateway } = yield* startServed(client, serials, {
      weights,
      threads,
      gpu: stage.gpu,
      profileDir: stage.profileDir,
      settings: settingsOf(stage),
    })
    const startSeconds = (performance.now() - beganMs) / 1_000
    const prompt = () => serials.prompts(1, promptTokens)[0] ?? ""
    const readings = yield* Effect.forEach(Array.from({ length: rounds }).keys(), () =>
      Effect.gen(function* () {
        const bodies = serials
          .prompts(streams, promptTokens)
          .map((each) => [sizedCompletion(each, unendingTokens)])
        yield* client.ask("start", { target: gateway.target, path: completionsPath, bodies })
        yield* client.ask("begun")
        yield* Effect.sleep(runMs)
        const before = yield* usedMib
        const pid = yield* engineOf(gateway)
        yield* Effect.sync(() => process.kill(pid, "SIGKILL"))
        const killedMs = performance.now()
        let refused = 0
        // A request that reaches the node before it has noticed the end fails like the streams that were running.
        yield* answerSeconds(gateway, sizedModel, prompt()).pipe(
          Effect.tapError(() => Effect.sync(() => refused++)),
          Effect.retry({ times: mostRetries, schedule: Schedule.spaced(retryMs) }),
        )
        const backSeconds = (performance.now() - killedMs) / 1_000
        const nextSeconds = yield* answerSeconds(gateway, sizedModel, prompt())
        const left = yield* usedByMib(pid)
        const beyond = (yield* usedMib) - before
        yield* client.ask("stop")
        const fresh = (yield* engineOf(gateway)) === pid ? 0 : 1
        return { backSeconds, nextSeconds, left: Number.isNaN(left) ? 0 : left, beyond, fresh, refused }
      }),
    )
    const of = (part: keyof (typeof readings)[number]) => readings.map((reading) => reading[part])
    return [
      {
        title: `An engine of ${size} that is killed on the card, ${streams} streams running`,
        method:
          "SIGKILL of the engine's process; the next request is sent at once, and again until it is answered",
        figures: [
          figure("start of the node with its first replies, to compare with", "s", [startSeconds]),
          figure("kill to the next whole reply", "s", of("backSeconds")),
          figure("  requests that failed before", "requests", of("refused")),
          figure("the reply after that", "s", of("nextSeconds")),
          figure("another process serves", "1 is yes", of("fresh"), atLeast(1)),
          figure("the driver counts for the killed process", "MiB", of("left"), atMost(0)),
          figure("the driver counts more than before the kill", "MiB", of("beyond")),
        ],
      },
    ]
  })

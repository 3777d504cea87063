// Streams that their clients leave: as many as the model has sequences, then as many new ones, which need those sequences.

import { Effect } from "effect"
import { median } from "#harness/figures/Statistics.ts"
import { atMost, besideFloor, figure, readingsOf } from "#harness/report/Figure.ts"
import { startLoadClient } from "../support/LoadClient.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { completionsPath } from "../text/Models.ts"
import { Serials, sizedCompletion, slots, unendingTokens } from "../text/sized/Models.ts"
import { promptOnce, runToEnd, startServed } from "../text/sized/Stage.ts"
import { type CardSize, type Measure, settingsOf, threads, weightsOf } from "./Stage.ts"

export interface CancelsPlan extends RoundsPlan {
  readonly size: CardSize
}

const promptTokens = 8
const replyTokens = 8
/** So many that the cancel falls into their evaluation. */
const longPromptTokens = 950
/** Milliseconds for which the streams run before they are left. */
const runMs = 200
/** Milliseconds from a long prompt's request to its cancel: after its parsing, before its end. A guess. */
const promptMs = 8

export const cancels: Measure<CancelsPlan> = (stage, { size, ...plan }) =>
  Effect.gen(function* () {
    const weights = (yield* weightsOf(size)).path
    const client = yield* startLoadClient
    const serials = new Serials()
    const served = yield* startServed(client, serials, {
      weights,
      threads,
      gpu: stage.gpu,
      profileDir: stage.profileDir,
      settings: settingsOf(stage),
    })
    const { target } = served
    const start = (tokens: number, count: number) => {
      const bodies = serials.prompts(count, tokens).map((prompt) => [sizedCompletion(prompt, unendingTokens)])
      return client.ask("start", { target, path: completionsPath, bodies })
    }
    const all = Effect.map(
      runToEnd(served, serials.prompts(slots, promptTokens), replyTokens),
      ({ firstEventMs }) => ({
        middle: median(firstEventMs),
        last: Math.max(...firstEventMs),
      }),
    )
    const one = Effect.suspend(() => promptOnce(served, serials.prompts(1, promptTokens)[0] ?? ""))
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const quiet = yield* all
        yield* start(promptTokens, slots)
        yield* client.ask("begun")
        yield* Effect.sleep(runMs)
        yield* client.ask("stop")
        const after = yield* all
        const alone = yield* one
        yield* start(longPromptTokens, 1)
        yield* Effect.sleep(promptMs)
        yield* client.ask("stop")
        const behind = yield* one
        return { quiet, after, aloneMs: alone.firstTokenMs, behindMs: behind.firstTokenMs }
      }),
    )
    const quiet = rounds.map((round) => round.quiet.last)
    const after = rounds.map((round) => round.after.last)
    const alone = rounds.map(({ aloneMs }) => aloneMs)
    const behind = rounds.map(({ behindMs }) => behindMs)
    return [
      {
        title: `${slots} streams that are left, then ${slots} new ones on the same sequences, ${size}`,
        method:
          `streams of up to ${unendingTokens} tokens, left after ${runMs} ms; the new ones are sent at once. A sequence that stayed taken ` +
          "would keep a new stream waiting until the old one's last token",
        figures: [
          ...besideFloor(
            readingsOf("first token of the last of them, node idle before", "ms", quiet),
            readingsOf("first token of the last of them, after the cancels", "ms", after),
            atMost(2),
          ),
          figure("cancelled streams", "streams", [rounds.length * slots]),
          figure("first token, node idle before", "ms", alone),
          figure(`first token after a prompt of ${longPromptTokens} tokens that was left`, "ms", behind),
        ],
      },
    ]
  })

// How long running replies wait while a picture is encoded and read beside them.
import { Effect } from "effect"
import { atMost, besideFloor, figureOf, ofEach, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { chatPath } from "../text/Models.ts"
import { ask } from "./FirstToken.ts"
import { longReply, pictureQuestion, pictureUrl, runningStreams, textQuestion } from "./Models.ts"
import type { Stage } from "./Stage.ts"

export interface BesidePlan extends RoundsPlan {
  readonly quietMs: number
}

const model = "smol-256m"

/** About as many as the picture has rows and markers. */
const promptWords = 70

/** Pictures of the other sections have smaller seeds. */
const firstSeed = 1_000

const takeRound = ({ client, gateway, ...stage }: Stage, { quietMs }: BesidePlan, nth: number) =>
  Effect.gen(function* () {
    const bodies = Array.from({ length: runningStreams }, (_, seed) => [longReply(model, nth * 10 + seed)])
    yield* client.ask("start", { target: gateway.target, path: chatPath, bodies })
    yield* client.ask("begun")
    yield* Effect.sleep(500)
    yield* client.ask("window")
    yield* Effect.sleep(quietMs)
    const quiet = yield* client.ask("window")
    yield* ask(
      { client, gateway, ...stage },
      textQuestion(model, `${nth} beside${" what".repeat(promptWords)}`),
    )
    yield* Effect.sleep(200)
    const text = yield* client.ask("window")
    yield* Effect.sleep(500)
    yield* client.ask("window")
    yield* gateway.child.ask("watchLoop")
    const url = pictureUrl(firstSeed + nth, 512, 512)
    const reply = yield* ask({ client, gateway, ...stage }, pictureQuestion(model, url, `what is it ${nth}`))
    // The gap that the first token interrupted has ended too.
    yield* Effect.sleep(200)
    const during = yield* client.ask("window")
    const loop = yield* gateway.child.ask("loopDelay")
    yield* client.ask("stop")
    yield* Effect.sleep(300)
    return {
      quietP99Ms: quiet.gaps.p99,
      quietLongestMs: quiet.gaps.max,
      textLongestMs: text.gaps.max,
      longestMs: during.gaps.max,
      firstMs: reply.firstEventMs,
      workMs: loop?.longestWork ?? Number.NaN,
    }
  })

export const besideReplies = (stage: Stage, plan: BesidePlan): Effect.Effect<Part, ChildFailed> =>
  Effect.map(
    repeatRounds(plan, (nth) => takeRound(stage, plan, nth)),
    (rounds) => {
      const of = (name: string, part: keyof (typeof rounds)[number]) =>
        ofEach(rounds, name, "ms", (round) => round[part])
      return {
        title: `A picture of one tile beside ${runningStreams} running replies of the same model, one thread`,
        method: `gaps between arrivals on the running streams, ${plan.quietMs} ms without, with a text prompt and with the picture, until its first token`,
        figures: [
          figureOf(of("quiet gap, longest", "quietLongestMs")),
          figureOf(of("gap beside a text prompt of this length, longest", "textLongestMs")),
          ...besideFloor(
            of("quiet gap p99", "quietP99Ms"),
            of("gap beside the picture, longest", "longestMs"),
            atMost(3),
          ),
          figureOf(of("first token about the picture", "firstMs")),
          figureOf(of("gateway's event loop, longest by its own work (CPU)", "workMs"), atMost(10)),
        ],
      }
    },
  )

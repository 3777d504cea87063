// The cost of live transcription without a node: a late window of a session against an early one, and a session
// against one that reuses nothing and must end in the same text.
import { Effect } from "effect"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import { type Child, ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { HearingCommands } from "./hearingMain.ts"

export interface HearingPlan extends RoundsPlan {
  /** Seconds of the session that is compared with a fresh pass at every window. */
  readonly freshSeconds: number
}

/** The last windows of a session, as many as about three pieces have, so that their phases cancel out. */
const windows = 20
const sum = (values: ArrayLike<number>): number =>
  Array.from(values).reduce((total, value) => total + value, 0)
const mean = (values: Float64Array): number => sum(values) / values.length

/** The longest session (protocol 10.1), seconds. */
const longSeconds = 120

export const hearingSection = (
  child: Child<HearingCommands>,
  plan: HearingPlan,
): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const ask = (from: number, to: number, fromScratch = false) =>
          child.ask("session", { from, to, fromScratch })
        // The same 20 s of speech, late in a long session and at the beginning of another.
        const old = yield* ask(0, longSeconds)
        const young = yield* ask(longSeconds - 30, longSeconds)
        const reused = yield* ask(0, plan.freshSeconds)
        const fresh = yield* ask(0, plan.freshSeconds, true)
        if (reused.text !== fresh.text) {
          return yield* new ChildFailed({ child: "hearing", detail: "reuse changed the text" })
        }
        const [late, early] = [old, young].map(({ windowUs }) => mean(windowUs.subarray(-windows)))
        return {
          early: early! / 1000,
          late: late! / 1000,
          ratio: late! / early!,
          share: sum(reused.windowUs) / sum(fresh.windowUs),
        }
      }),
    )
    const of = (key: "early" | "late" | "ratio" | "share") => rounds.map((round) => round[key])
    return {
      title: "Live hearing, built-in recogniser, windows of one second",
      method:
        `CPU of the process, engine and hearing together; a window's is the mean of ${windows} around its second, the ` +
        "same speech for both, in a session of 120 s and in one of 30 s; " +
        `the session against one that transcribes all its audio at every window has ${plan.freshSeconds} s`,
      figures: [
        figure("a window at 20 s", "ms CPU", of("early")),
        figure("a window at 110 s", "ms CPU", of("late")),
        figure("  against the one at 20 s", "ratio", of("ratio"), atMost(1.5)),
        figure("session against one from scratch", "ratio", of("share"), atMost(0.25)),
      ],
    }
  })

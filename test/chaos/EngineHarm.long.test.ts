// A small chaos run (`npm run chaos` is the full one): an engine of each kind fails in each way while
// clients of all kinds are served. The counts must hold here too; times are measured by the bench only.
import { Effect } from "effect"
import { expect, it } from "vitest"
import { startStage } from "../../bench/chaos/Stage.ts"
import { type Harm, trials } from "../../bench/chaos/Trials.ts"
import { needs } from "../support/groups/Needs.ts"

const harms: ReadonlyArray<Harm> = [
  ["text", "SIGSTOP"],
  ["transcription", "SIGSEGV"],
  ["speech", "out of memory"],
  ["text", "out of memory"],
]

it(
  "its own clients get what was promised, no other client is affected, and it answers again",
  needs("linux"),
  async () => {
    const parts = await Effect.runPromise(
      Effect.scoped(
        Effect.flatMap(startStage(undefined, 2), (stage) =>
          trials(stage, { harms, rounds: 1, withinMs: 0, quietMs: 100 }),
        ),
      ),
    )
    const found = parts.flatMap(({ figures }) => figures)
    const of = (what: RegExp) => found.filter(({ name }) => what.test(name))
    const promised = of(/harmed as promised/)
    expect(promised).toHaveLength(harms.length)
    expect(promised.map(({ low }) => low)).toEqual(harms.map(() => 1))
    // Without an answer the delay would be infinite.
    expect(of(/answers again/).every(({ high }) => high !== null)).toBe(true)
    expect(of(/answers to others/)[0]?.median).toBeGreaterThan(0)
    expect(of(/^ {2}failed$/).map(({ high }) => high)).toEqual([0])
  },
)

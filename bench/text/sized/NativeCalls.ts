// The duration of one native call at each number of prompt tokens (how long a cancel may wait), and the share of a step
// that samples tokens from the vocabulary and turns them into text.
import { Effect } from "effect"
import type { Sampling } from "#engines/protocol/Engine.ts"
import { atMost, figure, figureOf, ofEach, type Part } from "#harness/report/Figure.ts"
import { type ChildFailed, startChild } from "../../support/Child.ts"
import type { NativeCommands, StepParts } from "./nativeMain.ts"
import type { SizedStage } from "./Stage.ts"

export interface NativePlan {
  readonly rounds: number
  readonly streams: ReadonlyArray<number>
  readonly steps: number
}

const sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

const plain: Sampling = {
  temperature: 0.7,
  topP: 1,
  topK: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  seed: 0,
}

const samplings: ReadonlyArray<readonly [name: string, sampling: Sampling]> = [
  ["greedy", { ...plain, temperature: 0 }],
  ["temperature 0.7", plain],
  ["temperature 0.7, top_p 0.9", { ...plain, topP: 0.9 }],
]

const share = ({ decodeMs, sampleMs, textMs }: StepParts): number =>
  (100 * (sampleMs + textMs)) / (decodeMs + sampleMs + textMs)

export const nativeCalls = (
  { threads, weights }: SizedStage,
  plan: NativePlan,
): Effect.Effect<ReadonlyArray<Part>, ChildFailed> =>
  Effect.gen(function* () {
    const native = yield* startChild<NativeCommands>({
      name: "native calls",
      entry: new URL("./nativeMain.ts", import.meta.url),
    })
    const calls = yield* native.ask("calls", { weights, threads, sizes, rounds: plan.rounds })
    const loads = plan.streams.flatMap((streams) =>
      samplings.map(([name, sampling]) => ({ name, load: { streams, steps: plan.steps, sampling } })),
    )
    const steps = yield* native.ask("steps", { weights, threads, loads: loads.map(({ load }) => load) })
    const named = (streams: number) => (streams === 1 ? "1 stream" : `${streams} streams`)
    return [
      {
        title: `One native call, ${threads} threads`,
        method:
          "a call for tokens of one prompt that does not end there; a cancel waits for the call under way",
        figures: calls.map(({ elapsedMs, tokens }) => figure(`${tokens} tokens`, "ms", elapsedMs)),
      },
      {
        title: `Sampling and detokenising, ${threads} threads`,
        method:
          "each step: one native call for all streams, a draw from the whole vocabulary a stream, each token to text",
        figures: loads.flatMap(({ load, name }, at) => {
          const parts = steps[at] ?? []
          return [
            figureOf(
              ofEach(
                parts,
                `${named(load.streams)}, ${name}: step`,
                "ms",
                ({ decodeMs, sampleMs, textMs }) => decodeMs + sampleMs + textMs,
              ),
            ),
            figure("  share of sampling and detokenising", "%", parts.map(share), atMost(5)),
          ]
        }),
      },
    ]
  }).pipe(Effect.scoped)

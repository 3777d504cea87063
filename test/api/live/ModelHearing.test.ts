// A stream of audio through a model of speech: whole steps in their order with what the step before left, whatever the pieces; and its end.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { ModelHearing } from "#api/live/ModelHearing.ts"
import type { DetectPiece } from "#engines/protocol/Detection.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"

const step = 512

/** A model that remembers the number of steps, and answers so often. */
const model = (answers = Number.POSITIVE_INFINITY) => {
  const pieces: Array<DetectPiece> = []
  return {
    pieces,
    isReady: () => true,
    detect: (piece: DetectPiece) =>
      Effect.sync(() => {
        pieces.push(piece)
        if (pieces.length > answers) return undefined
        const before = piece.memory?.[0] ?? 0
        const count = piece.samples.length / step
        return {
          scores: Float32Array.from({ length: count }, (_, i) => (before + i) / 1_000),
          memory: Float32Array.of(before + count),
        }
      }),
  }
}

it.effect("gets whole steps, behind the silence that the detector begins with", () =>
  Effect.gen(function* () {
    const one = model()
    const hearing = new ModelHearing(one)
    hearing.begins(48)
    const samples = Int16Array.from({ length: 20_000 }, (_, i) => (i % 3_000) + 1)
    const random = seededRandom(3)
    for (let at = 0; at < samples.length; ) {
      const size = 1 + Math.floor(random() * 1_500)
      yield* hearing.hear(samples.subarray(at, at + size))
      at += size
    }
    const all = one.pieces.flatMap(({ samples }) => [...samples])
    expect(all.length % step).toBe(0)
    expect(all).toEqual([...new Int16Array(48), ...samples].slice(0, all.length))
    expect(samples.length + 48 - all.length).toBeLessThan(step)
    const steps = all.length / step
    expect(one.pieces.at(-1)!.memory?.[0]).toBe(steps - one.pieces.at(-1)!.samples.length / step)
    // The hop in the middle of the tenth step.
    expect(hearing.scores.knows(Math.floor((9.5 * step) / 160))).toBe(true)
    expect(hearing.scores.at(Math.floor((9.5 * step) / 160))).toBeCloseTo(0.009)
    expect(hearing.isOver).toBe(false)
  }),
)

it.effect("is over once the model does not answer", () =>
  Effect.gen(function* () {
    const hearing = new ModelHearing(model(1))
    yield* hearing.hear(new Int16Array(step))
    expect(hearing.isOver).toBe(false)
    yield* hearing.hear(new Int16Array(step))
    expect(hearing.isOver).toBe(true)
    expect(hearing.scores.knows(1_000)).toBe(true)
    expect(hearing.scores.at(1_000)).toBeUndefined()
  }),
)

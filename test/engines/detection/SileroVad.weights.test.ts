// Silero VAD on exports with the published names and weights made by hand: its scores against the same computed directly, however the audio is
// cut, alone and with other sessions in one call; and what a load refuses.
import { rmSync, truncateSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import { sileroVadOnnx } from "#engines/detection/SileroVad.ts"
import type { Detected, DetectionEngine, DetectPiece, EngineSpec } from "#engines/protocol/Engine.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import { CollectingOutlet } from "../../support/engines/EngineHarness.ts"
import {
  type ToyDetection,
  type ToySileroOptions,
  toySpeech,
  writtenSilero,
  writtenSmartTurn,
} from "../../support/engines/ToyDetection.ts"

const step = 512

const written = (make: () => ToyDetection) =>
  Effect.acquireRelease(Effect.sync(make), ({ folder }) =>
    Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const load = Effect.fnUntraced(function* (options: ToySileroOptions = {}) {
  const { spec } = yield* written(() => writtenSilero(options))
  return (yield* sileroVadOnnx.acquire(spec)) as DetectionEngine
})

const detect = (engine: DetectionEngine, pieces: ReadonlyArray<DetectPiece>) =>
  Effect.suspend(() => {
    const out = new CollectingOutlet<"detection">()
    return Effect.as(engine.detect({ pieces }, out), out.units)
  })

/** Loud and quiet stretches. */
const audio = (steps: number, seed: number): Int16Array => {
  const random = seededRandom(seed)
  let loud = 0
  return Int16Array.from({ length: steps * step }, (_, i) => {
    if (i % 700 === 0) loud = random() * 0.06
    return Math.round((random() - 0.5) * 2 * loud * 32_767)
  })
}

const mean = (samples: Float32Array) =>
  samples.reduce((sum, sample) => sum + Math.abs(sample), 0) / samples.length

const expected = (samples: Int16Array): ReadonlyArray<number> => {
  const all = s16ToF32(samples)
  return Array.from({ length: all.length / step }, (_, i) => {
    const at = i * step
    const before = i === 0 ? new Float32Array(64) : all.subarray(at - 64, at)
    return toySpeech(mean(all.subarray(at, at + step)), mean(before), i)
  })
}

const near = (found: ReadonlyArray<number>, wanted: ReadonlyArray<number>) => {
  expect(found.length).toBe(wanted.length)
  found.forEach((score, i) => {
    expect(score, `step ${i}`).toBeCloseTo(wanted[i]!, 4)
  })
}

describe("scores", () => {
  for (const options of [{}, { takesRate: false }, { oneRow: true }])
    it.effect(`of ${JSON.stringify(options)}, in pieces, with context and state carried over`, () =>
      Effect.gen(function* () {
        const engine = yield* load(options)
        expect(engine.facts).toMatchObject({ detects: "speech", slots: 1 })
        const sessions = [audio(20, 1), audio(20, 2), audio(20, 3)]
        const memories: Array<Float32Array | undefined> = [undefined, undefined, undefined]
        const found: Array<Array<number>> = [[], [], []]
        const random = seededRandom(7)
        while (found.some((scores) => scores.length < 20)) {
          // Some sessions are due, with pieces of different length.
          const due = [0, 1, 2].filter((i) => found[i]!.length < 20 && random() < 0.7)
          if (due.length === 0) continue
          const pieces = due.map((i) => {
            const from = found[i]!.length
            const to = Math.min(20, from + 1 + Math.floor(random() * 3))
            const memory = memories[i]
            return {
              samples: sessions[i]!.slice(from * step, to * step),
              ...(memory === undefined ? {} : { memory }),
            }
          })
          const results: ReadonlyArray<Detected> = yield* detect(engine, pieces)
          due.forEach((i, at) => {
            found[i]!.push(...results[at]!.scores)
            memories[i] = results[at]!.memory
          })
        }
        found.forEach((scores, i) => near(scores, expected(sessions[i]!)))
        expect(Math.max(...found[0]!)).toBeGreaterThan(0.7)
        expect(Math.min(...found[0]!)).toBeLessThan(0.1)
      }),
    )

  it.effect("refuses what is no whole step, and the memory of another model", () =>
    Effect.gen(function* () {
      const engine = yield* load()
      const bad = [
        { samples: new Int16Array(0) },
        { samples: new Int16Array(step + 1) },
        { samples: new Int16Array(step), memory: new Float32Array(3) },
      ]
      for (const piece of bad) {
        const error = yield* Effect.flip(detect(engine, [piece]))
        expect(error).toMatchObject({ reason: "InvalidInput", field: "pieces" })
      }
      near([...(yield* detect(engine, [{ samples: audio(1, 1) }]))[0]!.scores], expected(audio(1, 1)))
    }),
  )
})

describe("load", () => {
  const refusal = Effect.fnUntraced(function* (
    make: () => ToyDetection,
    spec?: (spec: EngineSpec) => EngineSpec,
  ) {
    const toy = yield* written(make)
    const error = yield* Effect.flip(sileroVadOnnx.acquire(spec?.(toy.spec) ?? toy.spec))
    expect(error.reason).toBe("LoadFailed")
    expect(error.detail).not.toContain(toy.folder)
    return error.detail
  })

  it.effect("names what is wrong with an export", () =>
    Effect.gen(function* () {
      expect(yield* refusal(() => writtenSilero({ version: 4 }))).toContain("Silero VAD 4")
      expect(yield* refusal(() => writtenSilero({ rateHz: 8_000, oneRow: true }))).toMatch(
        /takes 288 samples.*16 kHz/,
      )
      expect(yield* refusal(writtenSmartTurn)).toMatch(/no input named input; it declares input_features/)
      const cut = () => {
        const toy = writtenSilero()
        truncateSync(toy.spec.files.model!, 600)
        return toy
      }
      expect(yield* refusal(cut)).toContain("silero_vad.onnx")
      expect(yield* refusal(writtenSilero, (spec) => ({ ...spec, files: {} }))).toMatch(
        /names no file for "model"/,
      )
    }),
  )
})

// Chunks of several speakers in one call: any requests side by side hear what each hears alone, in fewer native calls.
import { rmSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as fc from "fast-check"
import { Tensor } from "onnxruntime-node"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import type { TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { divided, joined } from "#engines/transducer/SharedCalls.ts"
import { transducerOnnx } from "#engines/transducer/TransducerEngine.ts"
import { countedCalls } from "../../support/engines/NativeCalls.ts"
import { endOf, randomTones, type ToneLayout, toneAudio, toneEars } from "../../support/engines/ToneEars.ts"
import { collector, request } from "../whisper/support/demoModel.ts"

const load = (layout: ToneLayout, options: Readonly<Record<string, unknown>> = {}) =>
  Effect.gen(function* () {
    const ears = yield* Effect.acquireRelease(
      Effect.sync(() => toneEars({ layout, options })),
      ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true })),
    )
    return (yield* transducerOnnx.acquire(ears.spec)) as TranscriptionEngine
  })

const audioOf = (seed: number, words: number): Float32Array => {
  const tones = randomTones(words, seed)
  return s16ToF32(toneAudio(tones, endOf(tones) + 0.4, seed))
}

let streams = 1_000

/** A session: captions of growing audio, then the final text. What each request gave. */
const session = (engine: TranscriptionEngine, samples: Float32Array, steps: number) =>
  Effect.gen(function* () {
    const stream = streams++
    const said: Array<unknown> = []
    for (let step = 1; step <= steps; step++) {
      const last = step === steps
      const until = last ? samples.length : Math.floor((samples.length * step) / steps)
      const out = collector()
      const more = { language: undefined, stream, words: true, last, ...(last ? {} : { caption: true }) }
      yield* engine.transcribe(request(samples.subarray(0, until), more), out)
      said.push(out.segments.map(({ avgLogprob: _, ...segment }) => segment))
    }
    return said
  })

it.effect.each(["sherpa", "zipformer"] as const)("%s: side by side as alone, in fewer calls", (layout) =>
  Effect.gen(function* () {
    const engine = yield* load(layout)
    expect(engine.facts.sharedCalls).toBe(4)
    const calls = yield* countedCalls(layout === "zipformer" ? "x" : "audio_signal")
    let [callsAlone, callsTogether] = [0, 0]
    const rounds = fc.sample(
      fc.array(
        fc.record({
          seed: fc.integer({ min: 1, max: 500 }),
          words: fc.integer({ min: 1, max: 6 }),
          steps: fc.integer({ min: 1, max: 5 }),
        }),
        {
          minLength: 2,
          maxLength: 4,
        },
      ),
      60,
    )
    for (const speakers of rounds) {
      const audio = speakers.map(({ seed, words }) => audioOf(seed, words))
      const alone: Array<unknown> = []
      const before = calls()
      for (const [i, { steps }] of speakers.entries()) alone.push(yield* session(engine, audio[i]!, steps))
      const between = calls()
      callsAlone += between - before
      const together = yield* Effect.all(
        speakers.map(({ steps }, i) => session(engine, audio[i]!, steps)),
        { concurrency: "unbounded" },
      )
      callsTogether += calls() - between
      expect(together).toEqual(alone)
    }
    expect(callsTogether).toBeLessThan(0.8 * callsAlone)
  }),
)

it.effect("a request that is interrupted leaves the others theirs", () =>
  Effect.gen(function* () {
    const engine = yield* load("zipformer")
    const audio = [1, 2, 3].map((seed) => audioOf(seed, 5))
    const alone = yield* session(engine, audio[1]!, 1)
    for (let round = 0; round < 5; round++) {
      const first = yield* Effect.forkChild(session(engine, audio[0]!, 1))
      const second = yield* Effect.forkChild(session(engine, audio[1]!, 1))
      const third = yield* Effect.forkChild(session(engine, audio[2]!, 1))
      for (let i = 0; i < 3 * round; i++)
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* Fiber.interrupt(first)
      yield* Fiber.interrupt(third)
      expect(yield* Fiber.join(second)).toEqual(alone)
    }
  }),
)

it.effect("graphs of one row, and an engine of one slot, run each by itself", () =>
  Effect.gen(function* () {
    expect((yield* load("genai")).facts).not.toHaveProperty("sharedCalls")
    expect((yield* load("tdt")).facts).not.toHaveProperty("sharedCalls")
    expect((yield* load("zipformer", { slots: 1 })).facts).not.toHaveProperty("sharedCalls")
  }),
)

it("tensors are joined and divided along either axis", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(0 as const, 1 as const),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 3 }),
      fc.constantFrom("float32", "int64"),
      (rows, axis, outer, inner, type) => {
        const dims = axis === 0 ? [1, outer, inner] : [outer, 1, inner]
        const tensors = Array.from({ length: rows }, (_, row) => {
          const values = Array.from({ length: outer * inner }, (_, i) => row * 100 + i)
          return type === "float32"
            ? new Tensor("float32", Float32Array.from(values), dims)
            : new Tensor("int64", BigInt64Array.from(values, BigInt), dims)
        })
        const both = joined(tensors, axis)
        expect(both.dims[axis]).toBe(rows)
        const parts = divided(both, rows, axis)
        expect(parts.map(({ data, dims: own }) => [[...(data as Float32Array)], own])).toEqual(
          tensors.map(({ data, dims: own }) => [[...(data as Float32Array)], own]),
        )
      },
    ),
  )
})

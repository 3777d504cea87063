// The encoder's graph with its positions cut: equal to the original at full length, and running at any other, in every
// form that exporters give it; the weights stay in their files. An unsupported form is reported.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { EngineError } from "#engines/protocol/Engine.ts"
import { type OnnxSession, open, openEdited } from "#engines/shared/onnx/OnnxSession.ts"
import { float32, toFloat32 } from "#engines/shared/onnx/Tensors.ts"
import { shortAudioGraph } from "#engines/whisper/rules/ShortAudio.ts"
import { type ToyEncoderOptions, toyEncoder, toyMelBins, toyShape } from "../support/toyEncoder.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "encoder-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true })),
)

const edit = (path: string) => Effect.promise(() => shortAudioGraph(path, toyShape))

const hidden = Effect.fnUntraced(function* (encoder: OnnxSession, frames: number) {
  const features = Float32Array.from({ length: toyMelBins * frames }, (_, i) => Math.cos((i % frames) * 0.01))
  const feeds = { input_features: float32(features, [1, toyMelBins, frames]) }
  const { last_hidden_state: state } = yield* encoder.run(feeds)
  return { dims: state!.dims, values: toFloat32(state!) }
})

/** Both graphs of a file. */
const both = Effect.fnUntraced(function* (
  path: string,
): Effect.fn.Return<
  { readonly whole: OnnxSession; readonly short: OnnxSession; readonly bytes: number },
  EngineError,
  Scope.Scope
> {
  const graph = yield* edit(path)
  expect(graph).toBeDefined()
  const short = yield* openEdited(path, graph!, { threads: 1 })
  return { whole: yield* open(path, { threads: 1 }), short, bytes: graph!.length }
})

const check = Effect.fnUntraced(function* ({
  short,
  whole,
}: {
  readonly short: OnnxSession
  readonly whole: OnnxSession
}) {
  const full = yield* hidden(short, toyShape.frames)
  expect(full).toEqual(yield* hidden(whole, toyShape.frames))
  for (const frames of [64, 512, 2_998]) {
    const cut = yield* hidden(short, frames)
    expect(cut.dims).toEqual([1, frames / 2, toyShape.width])
    expect(cut.values.every(Number.isFinite)).toBe(true)
  }
  // The original does not accept it: only the edit makes it run.
  const refused = yield* Effect.flip(hidden(whole, 512))
  expect(refused.reason).toBe("Failed")
})

describe("the encoder's graph with its positions cut", () => {
  it.effect.each<[string, ToyEncoderOptions]>([
    ["direct", {}],
    ["gathered", { table: "gathered" }],
    ["quantized", { table: "quantized" }],
    ["in half precision", { table: "half" }],
    ["a constant node", { table: "constant" }],
    ["with a length that has a name", { length: "encoder_sequence_length" }],
    ["with reshapes of one length", { fixedReshapes: true }],
  ])("equals the original at full length and takes others, the table %s", ([, options]) =>
    Effect.gen(function* () {
      const path = join(yield* folder, "encoder_model.onnx")
      writeFileSync(path, toyEncoder(options).encodeModel())
      yield* check(yield* both(path))
    }),
  )

  it.effect("leaves the weights in their files, also in one beside the graph", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "encoder_model.onnx")
      const whole = toyEncoder().encodeModel()
      writeFileSync(path, whole)
      // 200 KB of weights, of which none is copied.
      const inside = yield* both(path)
      expect(whole.length).toBeGreaterThan(200_000)
      expect(inside.bytes).toBeLessThan(20_000)
      const { data, model } = toyEncoder().encodeExternal("encoder_model.onnx_data")
      writeFileSync(path, model)
      writeFileSync(`${path}_data`, data)
      const beside = yield* both(path)
      expect(beside.bytes).toBeLessThan(20_000)
      yield* check(beside)
    }),
  )

  it.effect("is refused where the table is missing, used twice, or of another size", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "encoder_model.onnx")
      for (const table of ["none", "twice"] as const) {
        writeFileSync(path, toyEncoder({ table }).encodeModel())
        expect(yield* edit(path)).toBeUndefined()
      }
      writeFileSync(path, toyEncoder().encodeModel())
      const other = yield* Effect.promise(() => shortAudioGraph(path, { ...toyShape, positions: 1_000 }))
      expect(other).toBeUndefined()
    }),
  )

  it.effect("of a damaged file is an error, never a hang", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "encoder_model.onnx")
      const whole = toyEncoder().encodeModel()
      for (const length of [0, 10, 1_000, whole.length - 100]) {
        writeFileSync(path, whole.subarray(0, length))
        const result = yield* Effect.exit(Effect.tryPromise(() => shortAudioGraph(path, toyShape)))
        expect(result._tag).toBe("Failure")
      }
    }),
  )
})

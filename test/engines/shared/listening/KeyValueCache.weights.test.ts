// Which parts of a decoder's state are freed between two tokens, and which are kept.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Tensor } from "onnxruntime-node"
import { cutTo, discover } from "#engines/shared/listening/KeyValueCache.ts"
import type { OnnxSession, TensorInfo } from "#engines/shared/onnx/OnnxSession.ts"
import { uses } from "../../../support/groups/Uses.ts"

uses("weights", "the library of ONNX Runtime, which a worker loads once")

const names = ["decoder.key", "decoder.value", "encoder.key", "encoder.value"]
const info = (name: string): readonly [string, TensorInfo] => [
  name,
  { name, type: "float32", shape: ["batch", 2, "length", 4] },
]
const session: OnnxSession = {
  file: "toy",
  inputs: new Map(names.map((name) => info(`past_key_values.0.${name}`))),
  outputs: new Map(["logits", ...names.map((name) => `present.0.${name}`)].map(info)),
  run: () => Effect.die(new Error("never called")),
}
const presents = (length: number) =>
  Object.fromEntries(
    names.map((name) => [
      `present.0.${name}`,
      new Tensor("float32", new Float32Array(8 * length).fill(length), [1, 2, length, 4]),
    ]),
  )
const sizes = (past: Readonly<Record<string, Tensor>>) =>
  names.map((name) => (past[`past_key_values.0.${name}`]!.data as Float32Array).length)

describe("KeyValueCache", () => {
  it.effect("releases what grows with the tokens, keeps the encoder's and every other state", () =>
    Effect.gen(function* () {
      const cache = yield* discover(session, [])
      const prompt = cache.advance(cache.initial, 3, presents(3))
      const next = cache.advance(prompt, 1, {
        "present.0.decoder.key": presents(4)["present.0.decoder.key"]!,
        "present.0.decoder.value": presents(4)["present.0.decoder.value"]!,
      })
      expect(sizes(next.past)).toEqual([32, 32, 24, 24])
      cache.release(next)
      expect(sizes(next.past)).toEqual([0, 0, 24, 24])
      expect(sizes(prompt.past)).toEqual([24, 24, 24, 24])
      // A cut state owns its tensors.
      const cut = cutTo(prompt, 2)
      cache.release(cut)
      expect(sizes(prompt.past)).toEqual([24, 24, 24, 24])
    }),
  )
})

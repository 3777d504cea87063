import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { packings } from "#engines/protocol/Packing.ts"
import type { DeltaDetail, TextDelta } from "#engines/protocol/Text.ts"

type Sent = readonly [id: number, delta: TextDelta]

const pack = (sent: ReadonlyArray<Sent>) => {
  const packer = packings.text.packer()
  for (const [id, delta] of sent) packer.add(id, delta)
  return packer.take()
}

const read = (packed: ReturnType<typeof pack>): ReadonlyArray<Sent> => {
  const received: Array<Sent> = []
  if (packed !== undefined)
    packings.text.read(packed, { onUnit: (id, unit) => void received.push([id, unit]) }, 0)
  return received
}

const detail: fc.Arbitrary<DeltaDetail> = fc.oneof(
  fc.record({ reply: fc.nat(5) }),
  fc.constant({ part: { kind: "reasoning" as const } }),
  fc.record({
    part: fc.record({ kind: fc.constant("call" as const), call: fc.nat(3), name: fc.string() }),
  }),
  fc.record({
    logprobs: fc.array(
      fc.record({
        token: fc.string(),
        bytes: fc.array(fc.nat(255)),
        logprob: fc.constant(-1),
        top: fc.constant([]),
      }),
    ),
  }),
)
const delta: fc.Arbitrary<TextDelta> = fc.oneof(
  fc.record({ text: fc.string(), completionTokens: fc.nat() }),
  fc.record({ text: fc.string(), completionTokens: fc.nat(), detail }),
)

describe("packed pieces of text", () => {
  it("are read as they were added, with their details, and a packer is empty after a message", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), delta)), (sent) => {
        expect(read(structuredClone(pack(sent)))).toEqual(sent)
      }),
    )
    const packer = packings.text.packer()
    packer.add(1, { text: "a", completionTokens: 1, detail: { reply: 1 } })
    packer.take()
    packer.add(1, { text: "b", completionTokens: 2 })
    expect(packer.take()).toEqual({ texts: ["b"], numbers: [1, 2] })
    expect(packer.take()).toBeUndefined()
  })

  it("have no field for details if none has one", () => {
    expect(Object.keys(pack([[1, { text: "a", completionTokens: 1 }]])!)).toEqual(["texts", "numbers"])
  })
})

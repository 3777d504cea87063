// Where an answer's time went: first times count, from the end of the user's turn; and bytes in base64, any of them.
import fc from "fast-check"
import { expect, it } from "vitest"
import { base64Of, bytesOf } from "../../talk/Base64.js"
import { Ledger } from "../../talk/Ledger.js"

it("has the first time of each step in their order", () => {
  const ledger = new Ledger(1_000)
  ledger.reached("understood", 1_030)
  ledger.reached("sound", 1_090)
  ledger.reached("words", 1_085)
  ledger.reached("sound", 2_000)
  expect(ledger.marks).toEqual([
    { name: "understood", atMs: 30 },
    { name: "first words", atMs: 85 },
    { name: "first sound", atMs: 90 },
  ])
  expect(ledger.onNode).toBe("")
  // A turn that was ended by hand has no silence.
  expect([ledger.silenceMs, ledger.longestMs]).toEqual([0, 90])
  ledger.told({ silence_ms: 480.5 })
  expect([ledger.silenceMs, ledger.longestMs]).toEqual([480.5, 570.5])
})

it("tells what the node told of its own times, and leaves out what it did not", () => {
  const ledger = new Ledger(0)
  ledger.told({ silence_ms: 500.4, transcript_ms: null, first_token_ms: 6, prepared: true })
  expect(ledger.onNode).toBe("Prepared during the silence. On the node: silence 500 ms, first token 6 ms.")
})

it("carries any bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20_000 }), (bytes) => {
      expect(base64Of(bytes)).toBe(Buffer.from(bytes).toString("base64"))
      expect(bytesOf(base64Of(bytes))).toEqual(Uint8Array.from(bytes))
    }),
  )
})

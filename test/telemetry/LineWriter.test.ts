// The log's writer: in order, in large writes, never waiting, bounded, and with a count of lost lines.
import { Effect, Exit, Scope } from "effect"
import { afterEach, beforeEach, expect, it } from "vitest"
import { LineWriter } from "../../src/telemetry/LineWriter.ts"

type Done = (error: Error | null, written: number) => void

/** A reader that takes a chosen number of bytes at chosen times. */
class Reader {
  text = ""
  calls = 0
  /** Results of the next writes; later ones succeed. */
  readonly script: Array<"EAGAIN" | "EPIPE" | "one byte" | "never"> = []
  readonly write = (_fd: number, bytes: Uint8Array, done: Done): void => {
    this.calls++
    const how = this.script.shift()
    if (how === "never") return
    if (how === "EAGAIN" || how === "EPIPE")
      return void setImmediate(() => done(Object.assign(new Error(how), { code: how }), 0))
    const taken = how === "one byte" ? 1 : bytes.length
    this.text += Buffer.from(bytes.subarray(0, taken)).toString()
    setImmediate(() => done(null, taken))
  }
}

let scope: Scope.Closeable
let reader: Reader
let counts: { logLines: number; logLinesDropped: number }
beforeEach(() => {
  scope = Scope.makeUnsafe()
  reader = new Reader()
  counts = { logLines: 0, logLinesDropped: 0 }
})
const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
afterEach(() => close())

const make = () =>
  Effect.runPromise(
    Scope.provide(
      LineWriter.make<number>(2, (entry) => `line ${entry}`, counts, reader.write),
      scope,
    ),
  )
const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}\n`).join("")

it("writes every line once and in order, many at a time, whatever a write takes of them", async () => {
  const writer = await make()
  reader.script.push("one byte", "EAGAIN", "one byte")
  for (let n = 0; n < 1_000; n++) writer.push(n)
  // `push` itself writes nothing and formats nothing.
  expect(reader.calls).toBe(0)
  await close()
  expect(reader.text).toBe(lines(1_000))
  expect(counts).toEqual({ logLines: 1_000, logLinesDropped: 0 })
  expect(reader.calls).toBeLessThan(20)
})

it("holds a bounded number of lines for a reader that does not read, and counts the others", async () => {
  const writer = await make()
  reader.script.push("never")
  for (let n = 0; n < 20_000; n++) writer.push(n)
  expect(counts).toEqual({ logLines: 0, logLinesDropped: 20_000 - 8_192 })
  // At the end it waits one second at most.
  await close()
  expect(reader.text).toBe("")
})

it("gives up on a reader that has left, and counts what it had", async () => {
  const writer = await make()
  reader.script.push("EPIPE")
  for (let n = 0; n < 10; n++) writer.push(n)
  await close()
  writer.push(11)
  expect(counts).toEqual({ logLines: 0, logLinesDropped: 11 })
})

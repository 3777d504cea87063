// The queue of a completions socket: nothing is lost or reordered, the reader is never given more at once than the
// transport takes, and generations pause while much waits.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { CloseEvent, type Writer } from "effect/socket/Socket"
import fc from "fast-check"
import { describe } from "vitest"
import { Outbox } from "#api/text/Outbox.ts"
import type { Generation } from "#services/Generation.ts"

const pauseAbove = 64 * 1024

class Reader {
  readonly batches: Array<ReadonlyArray<string>> = []
  readonly ends: Array<CloseEvent> = []
  readonly writer: Writer = {
    writeAll: (chunks) => Effect.sync(() => void this.batches.push(chunks as ReadonlyArray<string>)),
    write: (chunk) => Effect.sync(() => void this.ends.push(chunk as CloseEvent)),
  }
}

/** A generation that only counts whether it is paused. */
const generation = () => {
  const state = { paused: false }
  const flow = {
    pause: () => {
      state.paused = true
    },
    resume: () => {
      state.paused = false
    },
  }
  return { state, generation: { flow } as unknown as Generation }
}

/** Writes until nothing waits. */
const drain = (outbox: Outbox, reader: Reader) =>
  Effect.gen(function* () {
    const writing = yield* Effect.forkChild(Effect.forever(outbox.writeTo(reader.writer)), {
      startImmediately: true,
    })
    for (let seen = -1; seen !== reader.batches.length; ) {
      seen = reader.batches.length
      yield* Effect.yieldNow
      yield* Effect.yieldNow
    }
    yield* Fiber.interrupt(writing)
  })

describe("frames of a completions socket", () => {
  it.effect("arrive whole and in order, however many arrive before the writer runs", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(fc.integer({ min: 1, max: 30_000 }), { maxLength: 20 }), { maxLength: 6 }),
          (rounds) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const outbox = new Outbox()
                const reader = new Reader()
                const one = generation()
                outbox.add(one.generation)
                const sent: Array<string> = []
                for (const sizes of rounds) {
                  let waits = 0
                  for (const size of sizes) {
                    const frame = { at: sent.length, text: "x".repeat(size) }
                    outbox.push(frame)
                    sent.push(JSON.stringify(frame))
                    waits += sent.at(-1)!.length
                    expect(one.state.paused).toBe(waits > pauseAbove)
                  }
                  yield* drain(outbox, reader)
                  expect(one.state.paused).toBe(false)
                }
                expect(reader.batches.flat()).toEqual(sent)
                for (const batch of reader.batches) {
                  expect(batch.length === 1 || batch.join("").length <= 64 * 1024).toBe(true)
                }
              }),
            ),
        ),
      ),
    ),
  )

  it.effect("of 16 generations may wait, 300 tokens each, where the gateway was held up", () =>
    Effect.gen(function* () {
      const outbox = new Outbox()
      const reader = new Reader()
      for (let i = 0; i < 300 * 16; i++) outbox.push({ text: "x".repeat(190) })
      expect(outbox.overflow.isOpen()).toBe(false)
      yield* drain(outbox, reader)
      expect(reader.batches.flat().length).toBe(300 * 16)
    }),
  )

  it("end the socket where they go on although generations are paused", () => {
    const outbox = new Outbox()
    let pushed = 0
    while (!outbox.overflow.isOpen() && pushed < 10_000_000) {
      outbox.push({ text: "x".repeat(1_000) })
      pushed += 1_000
    }
    expect(pushed).toBeLessThanOrEqual(1024 * 1024)
  })

  it.effect("come before the end of the socket", () =>
    Effect.gen(function* () {
      const outbox = new Outbox()
      const reader = new Reader()
      for (let i = 0; i < 5; i++) outbox.push({ text: "x".repeat(40_000) })
      outbox.close(new CloseEvent(1001, "bye"))
      for (let i = 0; i < 5; i++) {
        expect(reader.ends).toEqual([])
        yield* outbox.writeTo(reader.writer)
      }
      expect(reader.batches.length).toBe(5)
      expect(reader.ends.map(({ code }) => code)).toEqual([1001])
    }),
  )

  it("pause a generation that begins while much waits", () => {
    const outbox = new Outbox()
    const [early, late] = [generation(), generation()]
    outbox.add(early.generation)
    outbox.push({ text: "x".repeat(pauseAbove) })
    outbox.add(late.generation)
    expect([early.state.paused, late.state.paused]).toEqual([true, true])
  })
})

// The calls of all sessions to one detection model: never two at a time, what waits shares the next, and each session gets its own result.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { afterEach, vi } from "vitest"
import type { Detected, DetectPiece } from "#engines/protocol/Detection.ts"
import { DetectionCalls } from "#services/detection/DetectionCalls.ts"

const piece = (first: number): DetectPiece => ({ samples: Int16Array.of(first) })
const scoreOf = ({ samples }: DetectPiece): Detected => ({ scores: Float32Array.of(samples[0]!) })

afterEach(() => {
  vi.useRealTimers()
})

/** Calls that end when the test says so. */
const make = Effect.fnUntraced(function* (mostMs = 60_000) {
  const calls: Array<{
    readonly pieces: ReadonlyArray<number>
    readonly end: Deferred.Deferred<"well" | "badly">
  }> = []
  let running = 0
  const run = (pieces: ReadonlyArray<DetectPiece>) =>
    Effect.gen(function* () {
      expect(++running).toBe(1)
      const end = Deferred.makeUnsafe<"well" | "badly">()
      calls.push({ pieces: pieces.map(({ samples }) => samples[0]!), end })
      const how = yield* Deferred.await(end)
      running--
      if (how === "badly") return yield* Effect.fail("away")
      return pieces.map(scoreOf)
    })
  const detection = new DetectionCalls(run, mostMs)
  yield* Effect.forkScoped(detection.serve)
  const ask = (first: number) => Effect.forkChild(detection.detect(piece(first)), { startImmediately: true })
  const called = (count: number) =>
    Effect.gen(function* () {
      while (calls.length < count) yield* Effect.yieldNow
    })
  const end = (call: number, how: "well" | "badly" = "well") => Deferred.succeed(calls[call]!.end, how)
  return { calls, ask, called, end }
})

it.effect("pieces of one tick share a call, those that come while it runs the next", () =>
  Effect.gen(function* () {
    const { ask, called, calls, end } = yield* make()
    const first = [yield* ask(1), yield* ask(2)]
    yield* called(1)
    const second = [yield* ask(3), yield* ask(4), yield* ask(5)]
    const left = yield* ask(6)
    yield* Fiber.interrupt(left)
    expect(calls.map(({ pieces }) => pieces)).toEqual([[1, 2]])
    yield* end(0)
    yield* called(2)
    expect(calls[1]!.pieces).toEqual([3, 4, 5])
    yield* end(1)
    const found = yield* Fiber.joinAll([...first, ...second])
    expect(found.map((one) => one?.scores[0])).toEqual([1, 2, 3, 4, 5])
  }),
)

it.effect("a call that fails gives nothing to its own pieces, and the next ones go on", () =>
  Effect.gen(function* () {
    const { ask, called, end } = yield* make()
    const first = yield* ask(1)
    yield* called(1)
    const second = yield* ask(2)
    yield* end(0, "badly")
    expect(yield* Fiber.join(first)).toBeUndefined()
    yield* called(2)
    yield* end(1)
    expect((yield* Fiber.join(second))?.scores[0]).toBe(2)
  }),
)

it.effect("so many pieces share a call and no more", () =>
  Effect.gen(function* () {
    const { ask, called, calls, end } = yield* make()
    const all = yield* Effect.forEach(
      Array.from({ length: 70 }, (_, i) => i),
      ask,
    )
    yield* called(1)
    expect(calls[0]!.pieces.length).toBe(64)
    yield* end(0)
    yield* called(2)
    expect(calls[1]!.pieces).toEqual([64, 65, 66, 67, 68, 69])
    yield* end(1)
    expect((yield* Fiber.joinAll(all)).map((one) => one?.scores[0])).toEqual(all.map((_, i) => i))
  }),
)

it.effect("a call that takes too long gives nothing, and what waits behind it does not wait for it", () =>
  Effect.gen(function* () {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const { ask, called, end } = yield* make(20)
    const first = yield* ask(1)
    yield* called(1)
    const second = yield* ask(2)
    vi.advanceTimersByTime(20)
    expect(yield* Fiber.join(first)).toBeUndefined()
    expect(yield* Fiber.join(second)).toBeUndefined()
    // What was given up is not asked about later.
    yield* end(0)
    const third = yield* ask(3)
    yield* called(2)
    yield* end(1)
    expect((yield* Fiber.join(third))?.scores[0]).toBe(3)
  }),
)

it.effect("a defect of a call is a failure of it alone", () =>
  Effect.gen(function* () {
    let calls = 0
    const run = (pieces: ReadonlyArray<DetectPiece>) =>
      ++calls === 1 ? Effect.die(new Error("broken")) : Effect.succeed(pieces.map(scoreOf))
    const detection = new DetectionCalls(run, 60_000)
    yield* Effect.forkScoped(detection.serve)
    expect(yield* detection.detect(piece(1))).toBeUndefined()
    expect((yield* detection.detect(piece(2)))?.scores[0]).toBe(2)
  }),
)

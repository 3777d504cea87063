// When audio is taken in, on a virtual clock: who waits, for how long, and who goes first.
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import { eventMs, IntakePace, type SocketPace, sliceSeconds, threadShare } from "#api/live/IntakePace.ts"
import { audioAllowance } from "#domain/access/AudioAllowance.ts"

const run = <A, E>(effect: Effect.Effect<A, E, IntakePace>, limited = true): Promise<A> =>
  Effect.runPromise(
    effect.pipe(
      Effect.provide(IntakePace.layer(limited)),
      Effect.provide(TestClock.layer()),
    ) as Effect.Effect<A, E>,
  )

/** What the thread is expected to take for a second of audio before it was measured, milliseconds. */
const usualMs = 4
/** Seconds of audio that the thread takes in a second. */
const sharePerSecond = threadShare.perSecond / usualMs

/** Takes audio in and counts it, in slices. */
const send = (
  pace: SocketPace,
  seconds: number,
  taken: { seconds: number },
  work = 1,
  msPerSecond = usualMs,
) =>
  Effect.gen(function* () {
    for (let at = 0; at < seconds; at += sliceSeconds) {
      const slice = Math.min(sliceSeconds, seconds - at)
      const took = yield* pace.take(slice, work)
      took(slice * work * msPerSecond)
      taken.seconds += slice
    }
  })

const settle = Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow, { discard: true })

/** Time passes in steps, because each wait begins where the one before has ended. */
const pass = (seconds: number) =>
  Effect.gen(function* () {
    for (let ms = 0; ms < seconds * 1_000; ms += 10) {
      yield* TestClock.adjust(10)
      yield* Effect.yieldNow
    }
    yield* settle
  })

const open = Effect.flatMap(IntakePace, (intake) => intake.open("u"))

describe("one socket", () => {
  it("sends 120 s at once, and then three times real time", async () => {
    await run(
      Effect.scoped(
        Effect.gen(function* () {
          const taken = { seconds: 0 }
          const fiber = yield* Effect.forkChild(send(yield* open, 1_000, taken))
          yield* pass(4)
          // What three times real time brings meanwhile is used, too.
          expect(taken.seconds).toBeGreaterThanOrEqual(audioAllowance.burst)
          expect(taken.seconds).toBeLessThanOrEqual(audioAllowance.burst + 3 * 4.5)
          const before = taken.seconds
          yield* pass(20)
          expect(taken.seconds - before).toBeGreaterThan(59)
          expect(taken.seconds - before).toBeLessThanOrEqual(61)
          yield* Fiber.interrupt(fiber)
        }),
      ),
    )
  })

  it("is not limited where callers are not, but for what the thread can do", async () => {
    await run(
      Effect.scoped(
        Effect.gen(function* () {
          const taken = { seconds: 0 }
          const fiber = yield* Effect.forkChild(send(yield* open, 100_000, taken))
          yield* pass(10)
          expect(taken.seconds).toBeGreaterThan(sharePerSecond * 9.5)
          expect(taken.seconds).toBeLessThanOrEqual(sharePerSecond * 10 + threadShare.burst / usualMs)
          yield* Fiber.interrupt(fiber)
        }),
      ),
      false,
    )
  })

  it("whose audio costs no work is not held back by those whose does", async () => {
    await run(
      Effect.scoped(
        Effect.gen(function* () {
          const busy = yield* Effect.forkChild(send(yield* open, 1_000, { seconds: 0 }))
          yield* settle
          const taken = { seconds: 0 }
          yield* send(yield* open, 100, taken, 0)
          expect(taken.seconds).toBe(100)
          yield* Fiber.interrupt(busy)
        }),
      ),
    )
  })
})

it("20 speakers of one user in real time for ten minutes: none waits", async () => {
  await run(
    Effect.scoped(
      Effect.gen(function* () {
        const speakers = yield* Effect.forEach(Array.from({ length: 20 }), () => open)
        // All at the same moment, every 20 ms, in one fiber, which would stop at the first that waits.
        const all = Effect.forEach(
          speakers,
          (pace) => Effect.map(pace.take(0.02, 1), (took) => took(0.02 * usualMs)),
          { discard: true },
        )
        for (let ms = 0; ms < 600_000; ms += 20) {
          const taken = yield* Effect.forkChild(all, { startImmediately: true })
          const exit = taken.pollUnsafe()
          if (exit === undefined || !Exit.isSuccess(exit)) expect([ms, exit]).toEqual([ms, Exit.void])
          yield* TestClock.adjust(20)
        }
      }),
    ),
  )
}, 120_000)

it("a machine that takes three times as long takes in a third", async () => {
  await run(
    Effect.scoped(
      Effect.gen(function* () {
        const taken = { seconds: 0 }
        yield* Effect.forkChild(send(yield* open, 100_000, taken, 1, 3 * usualMs))
        // Until it is known.
        yield* pass(2)
        const before = taken.seconds
        yield* pass(10)
        expect((taken.seconds - before) / 10).toBeGreaterThan((sharePerSecond / 3) * 0.9)
        expect((taken.seconds - before) / 10).toBeLessThan((sharePerSecond / 3) * 1.1)
      }),
    ),
    false,
  )
})

it("events take turns with audio: a user with many of them does not hold back another's", async () => {
  await run(
    Effect.scoped(
      Effect.gen(function* () {
        const intake = yield* IntakePace
        let handled = 0
        for (let socket = 0; socket < 20; socket++) {
          const { event } = yield* intake.open("many")
          const one = Effect.andThen(
            event(1),
            Effect.sync(() => handled++),
          )
          yield* Effect.forkChild(Effect.forever(one))
        }
        yield* pass(1)
        const before = handled
        yield* pass(2)
        const perSecond = threadShare.perSecond / eventMs
        expect((handled - before) / 2).toBeGreaterThan(perSecond * 0.9)
        expect((handled - before) / 2).toBeLessThan(perSecond * 1.1)
        // In real time the other user waits for one turn at most.
        const other = { seconds: 0 }
        yield* Effect.forkChild(send(yield* intake.open("one"), 3, other))
        yield* pass(1)
        expect(other.seconds).toBe(3)
      }),
    ),
  )
})

it("users take turns: one with 50 sockets does not hold back another with one", async () => {
  await run(
    Effect.scoped(
      Effect.gen(function* () {
        const intake = yield* IntakePace
        const many = yield* Effect.forEach(Array.from({ length: 50 }), () => intake.open("many"))
        const flood = { seconds: 0 }
        for (const pace of many) yield* Effect.forkChild(send(pace, 1_000, flood))
        yield* settle
        const one = yield* intake.open("one")
        const taken = { seconds: 0 }
        yield* Effect.forkChild(send(one, 60, taken))
        yield* pass(1)
        // Half of what the thread can do in a second.
        expect(taken.seconds).toBeGreaterThan(sharePerSecond * 0.45)
        expect(flood.seconds).toBeGreaterThan(sharePerSecond * 0.45)
      }),
    ),
  )
})

it("a socket that closes while it waits leaves nothing behind", async () => {
  await run(
    Effect.gen(function* () {
      const gone = { seconds: 0 }
      const fiber = yield* Effect.forkChild(
        Effect.scoped(Effect.flatMap(open, (pace) => send(pace, 100, gone))),
      )
      yield* settle
      const before = gone.seconds
      expect(before).toBeLessThan(100)
      yield* Fiber.interrupt(fiber)
      const taken = { seconds: 0 }
      yield* Effect.forkChild(Effect.scoped(Effect.flatMap(open, (pace) => send(pace, 100, taken))))
      yield* pass(2)
      expect(gone.seconds).toBe(before)
      expect(taken.seconds).toBe(100)
    }),
  )
})

// When audio is taken in, on a virtual clock: who waits, for how long, and who goes first.
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import { AudioIntake, type AudioPace, detectionShare, sliceSeconds } from "#api/live/AudioIntake.ts"
import { audioAllowance } from "#domain/access/AudioAllowance.ts"

const run = <A, E>(effect: Effect.Effect<A, E, AudioIntake>, limited = true): Promise<A> =>
  Effect.runPromise(
    effect.pipe(
      Effect.provide(AudioIntake.layer(limited)),
      Effect.provide(TestClock.layer()),
    ) as Effect.Effect<A, E>,
  )

/** Takes audio in and counts it, in slices. */
const send = (pace: AudioPace, seconds: number, taken: { seconds: number }, work = 1) =>
  Effect.gen(function* () {
    for (let at = 0; at < seconds; at += sliceSeconds) {
      yield* pace.take(Math.min(sliceSeconds, seconds - at), work)
      taken.seconds += Math.min(sliceSeconds, seconds - at)
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

const open = Effect.flatMap(AudioIntake, (intake) => intake.open("u"))

describe("one socket", () => {
  it("sends 120 s at once, and then three times real time", async () => {
    await run(
      Effect.scoped(
        Effect.gen(function* () {
          const taken = { seconds: 0 }
          const fiber = yield* Effect.forkChild(send(yield* open, 1_000, taken))
          yield* pass(2)
          // What three times real time brings meanwhile is used, too.
          expect(taken.seconds).toBeGreaterThanOrEqual(audioAllowance.burst)
          expect(taken.seconds).toBeLessThanOrEqual(audioAllowance.burst + 3 * 2.5)
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
          expect(taken.seconds).toBeGreaterThan(detectionShare.perSecond * 9.5)
          expect(taken.seconds).toBeLessThanOrEqual(detectionShare.perSecond * 10 + detectionShare.burst)
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
        // All at the same moment, every 20 ms.
        for (let ms = 0; ms < 600_000; ms += 20) {
          for (const pace of speakers) {
            const waits = yield* Effect.forkChild(pace.take(0.02, 1), { startImmediately: true })
            expect(waits.pollUnsafe()).toBeDefined()
          }
          yield* TestClock.adjust(20)
        }
      }),
    ),
  )
}, 120_000)

it("users take turns: one with 50 sockets does not hold back another with one", async () => {
  await run(
    Effect.scoped(
      Effect.gen(function* () {
        const intake = yield* AudioIntake
        const many = yield* Effect.forEach(Array.from({ length: 50 }), () => intake.open("many"))
        const flood = { seconds: 0 }
        for (const pace of many) yield* Effect.forkChild(send(pace, 1_000, flood))
        yield* settle
        const one = yield* intake.open("one")
        const taken = { seconds: 0 }
        yield* Effect.forkChild(send(one, 60, taken))
        yield* pass(1)
        // Half of what the thread can do in a second.
        expect(taken.seconds).toBeGreaterThan(detectionShare.perSecond * 0.45)
        expect(flood.seconds).toBeGreaterThan(detectionShare.perSecond * 0.45)
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

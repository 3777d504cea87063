// What a user's sockets may send that is not read, on a virtual clock.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import {
  CurrentDroppedBytes,
  DroppedBytes,
  droppedTraffic,
  ownedBy,
  refuseDropped,
} from "#api/live/DroppedBytes.ts"
import { CurrentSocketOwner } from "#http/SocketFrames.ts"

const { burstBytes, bytesPerSecond } = droppedTraffic
const ofASocket = 16 * 1024 * 1024

/** What a socket's messages are counted with. */
const dropped = (user: string, bytes: number) =>
  Effect.map(ownedBy(user, CurrentSocketOwner), (owner) => owner?.dropped(bytes))

const refusal = (user: string) => Effect.flip(refuseDropped(user))

const withNone = <A, E>(work: Effect.Effect<A, E>) =>
  Effect.provideService(work, CurrentDroppedBytes, new DroppedBytes())

describe("what the sockets of a user send that is not read", () => {
  it.effect("is let pass at first: two sockets that are closed for it are opened again at once", () =>
    withNone(
      Effect.gen(function* () {
        for (let sockets = 0; sockets < burstBytes / ofASocket; sockets++) {
          yield* refuseDropped("user")
          yield* dropped("user", ofASocket - 1)
        }
        yield* refuseDropped("user")
      }),
    ),
  )

  it.effect("beyond that refuses the next handshake, with the limit and for how long; no other user's", () =>
    withNone(
      Effect.gen(function* () {
        yield* dropped("user", burstBytes + 10 * bytesPerSecond)
        const { problem, retryAfterMs } = yield* refusal("user")
        expect(retryAfterMs / 1000).toBeCloseTo(10, 2)
        expect(problem).toContain(
          `${burstBytes} bytes of that at once are allowed, then ${bytesPerSecond} a second`,
        )
        yield* refuseDropped("another")
        yield* TestClock.adjust("9 seconds")
        expect((yield* refusal("user")).retryAfterMs / 1000).toBeCloseTo(1, 2)
        yield* TestClock.adjust("1100 millis")
        yield* refuseDropped("user")
      }),
    ),
  )

  it.effect("of a thousand sockets that end together refuses for little more than a minute", () =>
    withNone(
      Effect.gen(function* () {
        for (let sockets = 0; sockets < 1_000; sockets++) yield* dropped("user", ofASocket)
        const { retryAfterMs } = yield* refusal("user")
        expect(retryAfterMs).toBeGreaterThan(60_000)
        expect(retryAfterMs).toBeLessThan(70_000)
      }),
    ),
  )
})

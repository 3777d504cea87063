// How much the sockets of a user may send that no handler reads. uWebSockets.js cannot pause a WebSocket: what comes sooner than it may be
// handled waits, up to a limit, and then the socket is closed with 1009. To receive it costs the gateway's thread nearly as much as
// to handle it, so a user who lets that happen again and again finds its next handshake refused for some time.
import { Clock, Context, Effect } from "effect"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import { monotonicMs, monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { RateLimited } from "#domain/wire/Errors.ts"
import { CurrentSocketOwner } from "#http/SocketFrames.ts"

const mib = 1024 * 1024

/** Of a user over all sockets: twice what waits for one of them at most, and then so many bytes a second. Guesses. */
export const droppedTraffic = { burstBytes: 32 * mib, bytesPerSecond: 2 * mib }

/** A user who waits as long already is charged nothing more. A guess: sockets of a busy app are closed together. */
const mostWaitMs = 60_000

/** Users of which the newest bytes are remembered. */
const maxUsers = 10_000

export class DroppedBytes {
  readonly #limiter = new GcraLimiter({
    burst: droppedTraffic.burstBytes,
    forgiveMs: 1000 / droppedTraffic.bytesPerSecond,
    maxAddresses: maxUsers,
  })

  /** Milliseconds until a socket of the user may be opened. */
  waitMs(user: string, nowMs: number): number {
    return this.#limiter.waitMs(user, nowMs)
  }

  dropped(user: string, bytes: number, nowMs: number): void {
    if (this.waitMs(user, nowMs) < mostWaitMs) this.#limiter.failed(user, nowMs, bytes)
  }
}

/** One for the process, whose thread it is. */
export const CurrentDroppedBytes = Context.Reference<DroppedBytes>("edgewise/api/DroppedBytes", {
  defaultValue: () => new DroppedBytes(),
})

/** Refuses the handshake of a user whose sockets have sent too much that was not read. `user`: its id, or that of its client secret. */
export const refuseDropped = Effect.fnUntraced(function* (user: string) {
  const retryAfterMs = (yield* CurrentDroppedBytes).waitMs(user, yield* monotonicMs)
  if (retryAfterMs === 0) return
  const { burstBytes, bytesPerSecond } = droppedTraffic
  return yield* new RateLimited({
    retryAfterMs,
    problem: `The sockets of this user have sent more than could be read, and were closed: ${burstBytes} bytes of that at once are allowed, then ${bytesPerSecond} a second`,
  })
})

/** Opens a socket of the user: large messages that wait are counted for it, and what comes and is not read. */
export const ownedBy = <A, E, R>(user: string, upgrade: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const all = yield* CurrentDroppedBytes
    const clock = yield* Clock.Clock
    const dropped = (bytes: number): void => all.dropped(user, bytes, monotonicMsOf(clock))
    return yield* Effect.provideService(upgrade, CurrentSocketOwner, { id: user, dropped })
  })

// Paces the intake of all realtime sockets: when the gateway processes the audio and the events that they send. A socket that must wait
// is paused, so what it sends is neither refused nor lost. Two limits apply. A user may send only so much audio (AudioAllowance). And the
// gateway's thread, which resamples audio, detects speech and carries out events for all sockets, may spend only a part of its time
// on that; users are served in rotation. How long a session may be is decided elsewhere (`longestSessionSeconds` of LiveSession).
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { AudioAllowances } from "#domain/access/AudioAllowance.ts"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"

/**
 * Time that the gateway's thread may spend on all sockets together, milliseconds: `perSecond` on average, and `burst` within one tick of
 * the event loop. The rest is left to other requests, whose first token waits for many ticks. A guess, after a measurement: beside busy
 * sockets the 99th percentile of other requests' latency was 2 to 5 times its value without them at 200 ms a second, and 5 to 9 times
 * at 300.
 */
export const threadShare = { burst: 4, perSecond: 200 }

/** Seconds of audio of a long message that are processed at a time. That takes 1 to 2 ms where speech is detected. */
export const sliceSeconds = 0.25

/** Work of resampling one second of audio. The unit is the work of resampling it and detecting speech in it. Measured. */
export const resamplingWork = 0.3

/** Milliseconds to resample a second of audio and detect speech in it: the value before the first measurement. */
const usualMs = 4

/** Milliseconds to carry out an event of cost 1 (EventReader). Measured: 0.36 with its answer. */
export const eventMs = 0.4

/** Weight of the newest measurement in the moving average of the time that a second of audio takes. */
const newPart = 1 / 16

/** Where one socket waits before it processes something. */
export interface SocketPace {
  /**
   * Completes when so many seconds of audio may be processed; at most `sliceSeconds` if `work` is not 0. `work` is the work of one
   * second: 1 if speech is detected, `resamplingWork` if it is only resampled. Call the returned function with the milliseconds that
   * the thread spent on it.
   */
  readonly take: (seconds: number, work: number) => Effect.Effect<(tookMs: number) => void>
  /** Completes when the next event may be carried out. `cost` is that of the event before it (EventReader). */
  readonly event: (cost: number) => Effect.Effect<void>
}

interface Waiting {
  readonly ms: number
  readonly start: () => void
}

export class IntakePace extends Context.Service<
  IntakePace,
  {
    /** The pace of a socket of the user, until the scope closes. */
    readonly open: (userId: string) => Effect.Effect<SocketPace, never, Scope.Scope>
  }
>()("edgewise/api/IntakePace") {
  /** `limited`: whether a user's audio is limited. The time of the thread is limited in any case. */
  static readonly layer = (limited: boolean): Layer.Layer<IntakePace> =>
    Layer.effect(
      IntakePace,
      Effect.suspend(() => make(limited)),
    )
}

const make = Effect.fnUntraced(function* (limited: boolean) {
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const scope = yield* Effect.scope
  const nowMs = () => monotonicMsOf(clock)
  const allowances = new AudioAllowances()
  const share = new TokenBucket(threadShare, nowMs())
  /** Milliseconds to resample a second of audio and detect speech in it, measured, because machines differ in speed and load. */
  let audioMs = usualMs
  /** What waits, by user. The first user is served next. No list is empty. */
  const waiting = new Map<string, Array<Waiting>>()
  let serving = false

  const serve = Effect.gen(function* () {
    for (;;) {
      const next = waiting.entries().next()
      if (next.done === true) break
      const [user, queue] = next.value
      const [first] = queue as [Waiting, ...Array<Waiting>]
      const waitMs = share.waitMs(first.ms, nowMs())
      if (waitMs > 0) {
        yield* Effect.sleep(waitMs)
        continue
      }
      share.spend(first.ms, nowMs())
      queue.shift()
      waiting.delete(user)
      if (queue.length > 0) waiting.set(user, queue)
      first.start()
    }
    serving = false
  })

  const wait = (user: string, ms: number): Effect.Effect<void> =>
    Effect.callback((resume) => {
      const one = { ms, start: () => resume(Effect.void) }
      const queue = waiting.get(user)
      if (queue === undefined) waiting.set(user, [one])
      else queue.push(one)
      if (!serving) {
        serving = true
        Effect.runForkWith(context)(Effect.forkIn(serve, scope))
      }
      return Effect.sync(() => {
        const rest = (waiting.get(user) ?? []).filter((other) => other !== one)
        if (rest.length > 0) waiting.set(user, rest)
        else waiting.delete(user)
      })
    })

  /** Completes when the thread may spend `ms` on this user, at most the burst. */
  const turn = (user: string, ms: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      const now = nowMs()
      if (waiting.size > 0 || share.waitMs(ms, now) > 0) return wait(user, ms)
      share.spend(ms, now)
      return Effect.void
    })

  const pace = (user: string, bucket: TokenBucket): SocketPace => {
    const take: SocketPace["take"] = (seconds, work) =>
      Effect.suspend(() => {
        const now = nowMs()
        const waitMs = limited ? bucket.waitMs(seconds, now) : 0
        if (waitMs > 0) return Effect.andThen(Effect.sleep(waitMs), take(seconds, work))
        bucket.spend(seconds, now)
        const cost = seconds * work
        const expectedMs = Math.min(cost * audioMs, threadShare.burst)
        const took = (tookMs: number): void => {
          if (cost === 0) return
          audioMs += (tookMs / cost - audioMs) * newPart * Math.min(1, cost / sliceSeconds)
          share.add(expectedMs - tookMs, nowMs())
        }
        return cost === 0 ? Effect.succeed(took) : Effect.as(turn(user, expectedMs), took)
      })
    const event: SocketPace["event"] = (cost) =>
      cost > 0 ? turn(user, Math.min(cost * eventMs, threadShare.burst)) : Effect.void
    return { take, event }
  }

  return IntakePace.of({
    open: (userId) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => allowances.enter(userId, nowMs())),
          (bucket) => Effect.sync(() => allowances.leave(userId, bucket, nowMs())),
        ),
        (bucket) => pace(userId, bucket),
      ),
  })
})

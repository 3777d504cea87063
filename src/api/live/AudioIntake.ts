// When the audio and the events that a realtime socket has received are taken in. What may not be taken in yet is not read: its socket is
// paused, and nothing is refused or lost. Two things decide: how much audio the client may send (AudioAllowance), and what the gateway's
// thread can do, because it resamples audio, detects speech and carries out events for all sockets: for at most a part of its time, users
// in turn.
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { AudioAllowances } from "#domain/access/AudioAllowance.ts"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"

/**
 * Milliseconds of the gateway's thread for all sockets together. The rest is left to other requests, whose first token waits
 * for many turns of the event loop. A guess: with 300 the 99th percentile of others was 5 to 9 times that of quiet, with 200 it was 2 to 5. `burst`: what may come within one tick of the event loop.
 */
export const threadShare = { burst: 4, perSecond: 200 }

/** Audio of a long message that is taken in at a time, seconds: 1 to 2 ms where speech is detected. */
export const sliceSeconds = 0.25

/** What it costs the thread to resample a second of audio; to detect speech in it as well costs 1. Measured. */
export const resamplingWork = 0.3

/** What a second of audio takes where speech is detected, milliseconds, until it is measured. */
const usualMs = 4

/** What an event takes that costs 1 (EventReader), milliseconds. Measured: 0.36 with its answer. */
export const eventMs = 0.4

/** A measurement changes what the next audio is expected to take by this part. */
const newPart = 1 / 16

/** What one socket asks before it takes something in. */
export interface SocketPace {
  /**
   * Completes when so many seconds of audio may be taken in, at most `sliceSeconds` where they cost `work`. The function that it
   * gives is to be called with the milliseconds that this took the thread.
   */
  readonly take: (seconds: number, work: number) => Effect.Effect<(tookMs: number) => void>
  /** Completes when the next event may be carried out, after one that cost so much (EventReader). */
  readonly event: (cost: number) => Effect.Effect<void>
}

interface Waiting {
  readonly ms: number
  readonly start: () => void
}

export class AudioIntake extends Context.Service<
  AudioIntake,
  {
    /** The pace of a socket of the user, until the scope closes. */
    readonly open: (userId: string) => Effect.Effect<SocketPace, never, Scope.Scope>
  }
>()("edgewise/api/AudioIntake") {
  /** `limited`: whether callers are limited at all. What the thread can do counts in any case. */
  static readonly layer = (limited: boolean): Layer.Layer<AudioIntake> =>
    Layer.effect(
      AudioIntake,
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
  /** What a second of audio takes where speech is detected, milliseconds. A machine may be slower than another, or busier. */
  let audioMs = usualMs
  /** By user, the user to be served next in front. No empty lists. */
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

  /** Completes when the thread may work for this user for so long, at most the burst. */
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
    return { take, event: (cost) => (cost > 0 ? turn(user, cost * eventMs) : Effect.void) }
  }

  return AudioIntake.of({
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

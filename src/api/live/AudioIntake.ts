// When the audio that a socket has received is taken in. Audio that may not be taken in yet is not read: its socket is paused, and nothing
// is refused or lost. Two things decide: what the client may send (AudioAllowance), and what the gateway's thread can do, because it
// resamples audio and detects speech for all sockets: at most so much of it a second, users in turn.
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { AudioAllowances } from "#domain/access/AudioAllowance.ts"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"

/**
 * Seconds of audio in which speech is detected, of all sockets together. Measured (bench/README.md): a second takes the gateway 2 to 4 ms, so all
 * of it 20 to 40 % of its thread. `burst`: what may come within one tick of the event loop, 4 ms at most.
 */
export const detectionShare = { burst: 1, perSecond: 100 }

/** Audio of a long message that is taken in at a time, seconds: 1 ms at most where speech is detected. */
export const sliceSeconds = 0.25

/** What it costs the thread to resample a second of audio; to detect speech in it as well costs 1. Measured. */
export const resamplingWork = 0.3

/** What one socket asks before it takes audio in. */
export interface AudioPace {
  /** Completes when so many seconds of audio may be taken in, at most `sliceSeconds` where they cost `work`. */
  readonly take: (seconds: number, work: number) => Effect.Effect<void>
}

interface Waiting {
  readonly cost: number
  readonly start: () => void
}

export class AudioIntake extends Context.Service<
  AudioIntake,
  {
    /** The pace of a socket of the user, until the scope closes. */
    readonly open: (userId: string) => Effect.Effect<AudioPace, never, Scope.Scope>
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
  const share = new TokenBucket(detectionShare, nowMs())
  /** By user, the user to be served next in front. No empty lists. */
  const waiting = new Map<string, Array<Waiting>>()
  let serving = false

  const serve = Effect.gen(function* () {
    for (;;) {
      const next = waiting.entries().next()
      if (next.done === true) break
      const [user, queue] = next.value
      const [first] = queue as [Waiting, ...Array<Waiting>]
      const waitMs = share.waitMs(first.cost, nowMs())
      if (waitMs > 0) {
        yield* Effect.sleep(waitMs)
        continue
      }
      share.spend(first.cost, nowMs())
      queue.shift()
      waiting.delete(user)
      if (queue.length > 0) waiting.set(user, queue)
      first.start()
    }
    serving = false
  })

  const turn = (user: string, cost: number): Effect.Effect<void> =>
    Effect.callback((resume) => {
      const one = { cost, start: () => resume(Effect.void) }
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

  const pace = (user: string, bucket: TokenBucket): AudioPace => {
    const take = (seconds: number, work: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        const now = nowMs()
        const waitMs = limited ? bucket.waitMs(seconds, now) : 0
        if (waitMs > 0) return Effect.andThen(Effect.sleep(waitMs), take(seconds, work))
        bucket.spend(seconds, now)
        const cost = seconds * work
        if (cost === 0) return Effect.void
        if (waiting.size > 0 || share.waitMs(cost, now) > 0) return turn(user, cost)
        share.spend(cost, now)
        return Effect.void
      })
    return { take }
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

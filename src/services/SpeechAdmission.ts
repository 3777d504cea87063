// Admission of speech. Streams: as many as a model can feed in time, by the measured cost of its replies, as have a
// slot of the engine, and as get their first audio soon. Batch replies: on some of the slots only, so that streams find
// others. Decided before anything is answered. It counts replies and knows no engine.
import { Clock, Context, Effect, Exit, Layer, Scope, Semaphore } from "effect"
import { FirstAudioCost } from "#domain/audio/FirstAudioCost.ts"
import { admits, nextFactor, weightOf } from "#domain/models/StreamLoad.ts"
import { LearnedCost } from "#domain/queues/LearnedCost.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { AtCapacity } from "#domain/wire/Errors.ts"

/** The place of one reply among those that the model computes. */
interface SpeechPlace {
  /** The model has computed all of it: what remains to be played costs nothing. The end of the scope does the same. */
  readonly leave: () => void
  /** Its first audio has arrived. */
  readonly sounded: () => void
}

/** The state of a model when a request asks for admission. */
export interface SpeechModel {
  readonly id: string
  /** Requests that may wait for a slot. */
  readonly waitingLine: number
  /** Requests of any kind that hold a slot of its engine or wait for one. */
  readonly taken: number
  /** Unknown until the model has loaded. */
  readonly facts: { readonly slots: number; readonly realTimeFactor?: number } | undefined
}

/**
 * Most batch replies that are computed at the same time. One native call runs at a time, so more of them would end none
 * sooner; streams find the other slots free. A guess.
 */
const mostBatchPlaces = 7

interface ModelLoad {
  /** Real-time factor: at first the engine's measurement while it loaded, then the measured cost of replies. */
  cost: LearnedCost
  isLoaded: boolean
  openWeight: number
  open: number
  readonly firstAudio: FirstAudioCost
  /** Moving average of how long a stream's place is held, milliseconds; 1 s until the first one has ended (a guess). */
  holdMs: number
  /** Places of batch replies: all slots but one, up to `mostBatchPlaces`. */
  batch: { readonly places: number; readonly permits: Semaphore.Semaphore } | undefined
  /** Batch replies that have a place or wait for one. */
  batchAsked: number
}

export class SpeechAdmission extends Context.Service<
  SpeechAdmission,
  {
    /**
     * A stream's place, or a refusal: its first audio must come soon and the rest without a gap. A stream beside which no other
     * is computed is always admitted.
     */
    readonly stream: (
      model: SpeechModel,
      speed: number,
    ) => Effect.Effect<SpeechPlace, AtCapacity, Scope.Scope>
    /** A batch reply's place. Waits in a queue as long as the model's own. */
    readonly batch: (model: SpeechModel) => Effect.Effect<SpeechPlace, AtCapacity, Scope.Scope>
    /** Records the cost of a reply, batch or stream: `computeMs` of work for `audioMs` of speech. */
    readonly observe: (model: SpeechModel, computeMs: number, audioMs: number) => void
    readonly factor: (id: string) => number | undefined
    /** Drops the measurements of these models: their engines were replaced or removed. Open replies go on. */
    readonly forget: (which: (id: string) => boolean) => void
  }
>()("edgewise/api/SpeechAdmission") {
  static readonly layer = Layer.effect(SpeechAdmission, Effect.map(Clock.Clock, make))
}

function make(clock: Clock.Clock): SpeechAdmission["Service"] {
  // One entry for each deployed model; a reload drops those of removed models.
  const loads = new Map<string, ModelLoad>()
  const factorOf = ({ cost }: ModelLoad): number | undefined => cost.at(monotonicMsOf(clock))
  const loadOf = ({ facts, id }: SpeechModel): ModelLoad => {
    const known = loads.get(id) ?? {
      cost: new LearnedCost(0),
      isLoaded: false,
      openWeight: 0,
      open: 0,
      firstAudio: new FirstAudioCost(),
      holdMs: 1_000,
      batch: undefined,
      batchAsked: 0,
    }
    loads.set(id, known)
    const loaded = facts?.realTimeFactor
    if (!known.isLoaded && loaded !== undefined) {
      known.isLoaded = true
      const before = factorOf(known)
      known.cost = new LearnedCost(loaded, loaded)
      if (before !== undefined) known.cost.learn(before, monotonicMsOf(clock))
    }
    if (known.batch === undefined && facts !== undefined) {
      const places = Math.max(1, Math.min(facts.slots - 1, mostBatchPlaces))
      known.batch = { places, permits: Semaphore.makeUnsafe(places) }
    }
    return known
  }

  const refusal = (model: string, { holdMs, open }: ModelLoad) =>
    new AtCapacity({ model, retryAfterMs: Math.min(60_000, Math.max(1_000, holdMs / Math.max(1, open))) })

  /** Whether a stream would get a slot at once: one that waits for a slot waits for the end of another reply. */
  const hasSlot = ({ facts, taken }: SpeechModel, { open }: ModelLoad): boolean =>
    open === 0 || facts === undefined || Math.max(open, taken) < facts.slots

  const enterStream = (model: SpeechModel, speed: number) =>
    Effect.suspend(() => {
      const load = loadOf(model)
      const { firstAudio } = load
      const factor = factorOf(load)
      const weight = weightOf(speed)
      const inTime = admits(load.openWeight, weight, factor) && firstAudio.admits(factor)
      if (!inTime || !hasSlot(model, load)) return Effect.fail(refusal(model.id, load))
      load.openWeight += weight
      load.open++
      const beganMs = monotonicMsOf(clock)
      // The time of loading is not part of a stream's time.
      let silent = model.facts !== undefined
      if (silent) firstAudio.began(beganMs)
      let held = true
      const sounded = () => {
        if (silent) firstAudio.sounded(monotonicMsOf(clock))
        silent = false
      }
      const leave = () => {
        if (!held) return
        held = false
        const nowMs = monotonicMsOf(clock)
        if (silent) firstAudio.gaveUp(nowMs)
        silent = false
        load.open--
        // Sums of fractions do not return to exactly zero.
        load.openWeight = load.open === 0 ? 0 : load.openWeight - weight
        load.holdMs += (nowMs - beganMs - load.holdMs) / 8
      }
      return Effect.succeed({ leave, sounded })
    })

  const enterBatch = Effect.fnUntraced(function* (model: SpeechModel) {
    const load = loadOf(model)
    const { batch } = load
    // While the model loads there are no streams, and its own queue keeps the order.
    if (batch === undefined) return { leave: () => {}, sounded: () => {} }
    if (load.batchAsked >= batch.places + model.waitingLine) return yield* refusal(model.id, load)
    const scope = yield* Effect.acquireRelease(Scope.make(), (held) => Scope.close(held, Exit.void))
    const asked = Effect.acquireRelease(
      Effect.sync(() => load.batchAsked++),
      () => Effect.sync(() => load.batchAsked--),
    )
    yield* Effect.andThen(asked, batch.permits.takeScoped(1)).pipe(Scope.provide(scope))
    return { leave: () => Effect.runSync(Scope.close(scope, Exit.void)), sounded: () => {} }
  })

  return SpeechAdmission.of({
    stream: (model, speed) =>
      Effect.acquireRelease(enterStream(model, speed), ({ leave }) => Effect.sync(leave)),
    batch: enterBatch,
    observe: (model, computeMs, audioMs) => {
      const load = loadOf(model)
      const factor = nextFactor(factorOf(load), computeMs, audioMs)
      if (factor !== undefined) load.cost.learn(factor, monotonicMsOf(clock))
    },
    factor: (id) => {
      const load = loads.get(id)
      return load === undefined ? undefined : factorOf(load)
    },
    forget: (which) => {
      for (const id of loads.keys()) if (which(id)) loads.delete(id)
    },
  })
}

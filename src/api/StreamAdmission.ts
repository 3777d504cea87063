// Which streams of speech may begin: as many as a model can feed in time, by what its replies have cost so far. Asked
// by the speech handler before anything is answered. It counts streams and knows no engine.
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { AtCapacity } from "#domain/Errors.ts"
import { admits, nextFactor, weightOf } from "#domain/StreamLoad.ts"

/** The place of one stream among those that the model computes. */
export interface StreamPlace {
  /** The model has computed all of it: what is still to be heard costs nothing. The scope's end does the same. */
  readonly leave: () => void
}

interface ModelLoad {
  /** Real-time factor: first what the engine measured while it loaded, then what replies have cost. */
  factor: number | undefined
  openWeight: number
  open: number
  /** Moving average of how long a place is held, milliseconds; 1 s until one was given back (a guess). */
  holdMs: number
}

export class StreamAdmission extends Context.Service<
  StreamAdmission,
  {
    /** Takes a place. `loadedFactor` is what the engine measured while it loaded. */
    readonly enter: (
      model: string,
      speed: number,
      loadedFactor: number | undefined,
    ) => Effect.Effect<StreamPlace, AtCapacity, Scope.Scope>
    /** Takes note of a reply, batch or stream: `computeMs` of work for `audioMs` of speech. */
    readonly observe: (
      model: string,
      computeMs: number,
      audioMs: number,
      loadedFactor: number | undefined,
    ) => void
    readonly factor: (model: string) => number | undefined
  }
>()("edgewise/api/StreamAdmission") {
  static readonly layer = Layer.sync(StreamAdmission, () => make())
}

const make = (): StreamAdmission["Service"] => {
  // One entry a deployed model: callers ask for models that exist.
  const loads = new Map<string, ModelLoad>()
  const loadOf = (model: string): ModelLoad => {
    const known = loads.get(model)
    if (known !== undefined) return known
    const fresh: ModelLoad = { factor: undefined, openWeight: 0, open: 0, holdMs: 1_000 }
    loads.set(model, fresh)
    return fresh
  }

  const refusal = (model: string, { holdMs, open }: ModelLoad) =>
    new AtCapacity({ model, retryAfterMs: Math.min(60_000, Math.max(1_000, holdMs / Math.max(1, open))) })

  return StreamAdmission.of({
    enter: (model, speed, loadedFactor) =>
      Clock.clockWith((clock) =>
        Effect.acquireRelease(
          Effect.suspend(() => {
            const load = loadOf(model)
            load.factor ??= loadedFactor
            const weight = weightOf(speed)
            if (!admits(load.openWeight, weight, load.factor)) return Effect.fail(refusal(model, load))
            load.openWeight += weight
            load.open++
            const beganMs = clock.currentTimeMillisUnsafe()
            let held = true
            const leave = () => {
              if (!held) return
              held = false
              load.open--
              // Sums of fractions do not come back to zero by themselves.
              load.openWeight = load.open === 0 ? 0 : load.openWeight - weight
              load.holdMs += (clock.currentTimeMillisUnsafe() - beganMs - load.holdMs) / 8
            }
            return Effect.succeed({ leave })
          }),
          ({ leave }) => Effect.sync(leave),
        ),
      ),
    observe: (model, computeMs, audioMs, loadedFactor) => {
      const load = loadOf(model)
      load.factor = nextFactor(load.factor ?? loadedFactor, computeMs, audioMs)
    },
    factor: (model) => loads.get(model)?.factor,
  })
}

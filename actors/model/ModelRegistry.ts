// The models this node deploys, by id: their states, and the way in for requests. The api uses this service only; it never
// holds a host or a process. Which models there are is decided by Redeployment, at the start and at each reload.
import { Context, Effect, Layer, Option } from "effect"
import { isAtLeast, type MemoryLevel } from "#domain/models/MemoryLevel.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { MemoryPressure, ModelNotLoaded } from "#domain/wire/Errors.ts"
import type { Device } from "../device/Device.ts"
import { MemoryPressureLevel } from "../device/MemoryPressureLevel.ts"
import type { Listener, RunError, RunOptions } from "../engine/EngineRequest.ts"
import * as Tree from "../Tree.ts"
import type { Model } from "./Model.ts"
import type { ModelSnapshot, StatusChange } from "./ModelSnapshot.ts"
import { makeRedeployment, Redeployment } from "./Redeployment.ts"

/** What tells two contents of a weight file apart. */
export interface FileVersion {
  readonly sizeBytes: number
  /** Time of the last modification, milliseconds since 1970. */
  readonly modifiedMs: number
  /** Lower-case hex; undefined where neither the catalog nor a pull has one. */
  readonly sha256: string | undefined
}

/** A catalog entry together with where its files lie on this machine. */
export interface Deployment {
  readonly entry: ModelEntry
  /** Role → absolute path. */
  readonly files: Readonly<Record<string, string>>
  /** Role → version of the file, for a reload to see what changed. */
  readonly versions?: Readonly<Record<string, FileVersion>>
  /** Sum of the files, for the memory ledger. */
  readonly sizeBytes: number
  /** Sources that have to be pulled before the model can load. */
  readonly missing?: ReadonlyArray<string>
  /** Why its files cannot be loaded, in words for operators. */
  readonly problem?: string
}

/** What the node does with models that nobody uses: nothing, by default. And who watches. */
export interface RegistryOptions {
  /** For models that say nothing themselves; 0 keeps them. */
  readonly idleUnloadMs?: number
  /** Whether an idle model may be unloaded for another one, or for a node whose memory fills. */
  readonly evicts?: boolean
  /** Finds the weights of an entry as they are now; called before each load. Absent: they stay where they were. */
  readonly relocate?: (entry: ModelEntry) => Effect.Effect<Deployment>
  /** How long a removed or replaced model may go on with what it has begun, milliseconds. */
  readonly leaveAfterMs?: number
  /** Sees every change of a model's status as it happens. */
  readonly onStatus?: (id: string, change: StatusChange) => void
}

/** What a request may ask of the model besides what it asks of the engine. */
export interface ModelRunOptions extends RunOptions {
  /** The model it belongs to, where an earlier request of the same work has begun there: see Model.hold. */
  readonly on?: Model
}

export class ModelRegistry extends Context.Service<
  ModelRegistry,
  {
    readonly all: () => ReadonlyArray<ModelSnapshot>
    readonly find: (id: string) => ModelSnapshot | undefined
    /** Runs one request of the model's verb; see EngineHost.run. */
    readonly run: <Started, Unit, End>(
      id: string,
      request: unknown,
      listener: Listener<Started, Unit>,
      options?: ModelRunOptions,
    ) => Effect.Effect<End, RunError | ModelNotLoaded>
    readonly model: (id: string) => Model | undefined
  }
>()("edgewise/actors/ModelRegistry") {
  /** Starts one Model actor per deployment; those with `load: start` begin to load at once. */
  static readonly layer = (
    deployments: ReadonlyArray<Deployment>,
    options: RegistryOptions = {},
  ): Layer.Layer<ModelRegistry | Redeployment, never, Device> =>
    Layer.effectContext(Effect.suspend(() => make(deployments, options)))
}

const make = Effect.fnUntraced(function* (deployments: ReadonlyArray<Deployment>, options: RegistryOptions) {
  const models = new Map<string, Model>()
  const ladder = Option.getOrUndefined(yield* Effect.serviceOption(MemoryPressureLevel))
  const rung = (): MemoryLevel => ladder?.rung() ?? "calm"
  const redeployment = yield* makeRedeployment(models, options, () => isAtLeast(rung(), "busy"))
  yield* redeployment.apply(deployments)

  /** Whether the model that a request waited for is gone and another has its id: the request is the other's now. */
  const isNextOnes = (id: string, model: Model, { _tag }: RunError | ModelNotLoaded): boolean =>
    (_tag === "ModelUnavailable" || _tag === "InsufficientMemory") &&
    models.has(id) &&
    models.get(id) !== model

  const run = <Started, Unit, End>(
    id: string,
    request: unknown,
    listener: Listener<Started, Unit>,
    runOptions?: ModelRunOptions,
  ): Effect.Effect<End, RunError | ModelNotLoaded> =>
    // At the moment it runs: the model that was there when it was put together may have been replaced since.
    Effect.suspend((): Effect.Effect<End, RunError | ModelNotLoaded> => {
      const model = runOptions?.on ?? models.get(id)
      if (model === undefined) return Effect.fail(new ModelNotLoaded({ model: id }))
      // Background work waits in its queue instead; what has begun goes on.
      if (rung() === "full" && runOptions?.continues !== true && runOptions?.urgency !== "background")
        return Effect.fail(new MemoryPressure({ retryAfterMs: Tree.pressureRetryMs }))
      const running = model.run<Started, Unit, End>(request, listener, runOptions)
      if (runOptions?.on !== undefined) return running
      return Effect.catchIf(
        running,
        (error) => isNextOnes(id, model, error),
        () => run<Started, Unit, End>(id, request, listener, runOptions),
      )
    })

  const registry = ModelRegistry.of({
    all: () => [...models.values()].map((model) => model.view()),
    find: (id) => models.get(id)?.view(),
    model: (id) => models.get(id),
    run,
  })
  return Context.make(ModelRegistry, registry).pipe(Context.add(Redeployment, redeployment))
})

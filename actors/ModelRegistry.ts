// The models this node deploys, by id: who is there, in what state, and the way in for requests.
// The api talks to this service only; it never holds a Model, a host or a process.
import { Context, Effect, Layer, Option } from "effect"
import { MemoryPressure, ModelNotLoaded } from "#domain/Errors.ts"
import { type Evictable, victimsOf } from "#domain/Eviction.ts"
import { isAtLeast, type Rung } from "#domain/MemoryLadder.ts"
import type { ModelEntry } from "#domain/Model.ts"
import type { Device } from "./Device.ts"
import type { Listener, RunError, RunOptions } from "./EngineRun.ts"
import { MemoryLadder } from "./MemoryLadder.ts"
import { Model } from "./Model.ts"
import type { FoundFiles, MakeRoom, ModelView, StatusChange } from "./ModelView.ts"
import * as Tree from "./Tree.ts"

/** A catalog entry together with where its files lie on this machine. */
export interface Deployment {
  readonly entry: ModelEntry
  /** Role → absolute path. */
  readonly files: Readonly<Record<string, string>>
  /** Sum of the files, for the memory ledger. */
  readonly sizeBytes: number
  /** Sources that have to be pulled before the model can load. */
  readonly missing?: ReadonlyArray<string>
  /** What is wrong with the files, in words for the operator: the model cannot be loaded until it is mended. */
  readonly problem?: string
  /** Finds and checks the files again. */
  readonly recheck?: () => Effect.Effect<FoundFiles>
}

/** What the node does with models that nobody uses: nothing, by default. And who watches. */
export interface RegistryOptions {
  /** For models that say nothing themselves; 0 keeps them. */
  readonly idleUnloadMs?: number
  /** Whether an idle model may be unloaded for another one, or for a node whose memory fills. */
  readonly evicts?: boolean
  /** Sees every change of a model's status as it happens. */
  readonly onStatus?: (id: string, change: StatusChange) => void
}

/** What a process costs beside its weights: Node, the native library, buffers. A guess from one reading (110 MB). */
const processBytes = 150 * 1024 * 1024

export class ModelRegistry extends Context.Service<
  ModelRegistry,
  {
    readonly all: () => ReadonlyArray<ModelView>
    readonly find: (id: string) => ModelView | undefined
    /** Runs one request of the model's verb; see EngineHost.run. */
    readonly run: <Started, Unit, End>(
      id: string,
      request: unknown,
      listener: Listener<Started, Unit>,
      options?: RunOptions,
    ) => Effect.Effect<End, RunError | ModelNotLoaded>
    readonly model: (id: string) => Model | undefined
  }
>()("edgewise/actors/ModelRegistry") {
  /** Starts one Model actor per deployment; those with `load: start` begin to load at once. */
  static readonly layer = (
    deployments: ReadonlyArray<Deployment>,
    options: RegistryOptions = {},
  ): Layer.Layer<ModelRegistry, never, Device> =>
    Layer.effect(
      ModelRegistry,
      Effect.suspend(() => make(deployments, options)),
    )
}

const make = Effect.fnUntraced(function* (
  deployments: ReadonlyArray<Deployment>,
  { evicts = false, idleUnloadMs = 0, onStatus }: RegistryOptions,
) {
  const models = new Map<string, Model>()
  const ladder = Option.getOrUndefined(yield* Effect.serviceOption(MemoryLadder))
  const rung = (): Rung => ladder?.rung() ?? "calm"

  const evictable = (deviceId: string, except?: string): ReadonlyArray<Evictable> =>
    [...models].flatMap(([id, model]) => {
      const candidate = id === except ? undefined : model.evictable(deviceId)
      return candidate === undefined ? [] : [candidate]
    })

  const retire = (victims: ReadonlyArray<Evictable>, forModel: string): Effect.Effect<boolean> =>
    Effect.map(
      Effect.forEach(victims, ({ id }) => models.get(id)?.retire(forModel) ?? Effect.succeed(false), {
        concurrency: "unbounded",
      }),
      (gone) => gone.every((one) => one),
    )

  // Nobody waits here for a model that waits for this one: only loaded models are asked to go, and whoever makes room is
  // not loaded.
  const makeRoom: MakeRoom = (forModel, { deviceId, freeBytes, wantedBytes }) =>
    Effect.suspend(() => {
      if (!evicts) return Effect.succeed(false)
      const victims = victimsOf(evictable(deviceId, forModel), wantedBytes - freeBytes)
      return victims === undefined ? Effect.succeed(false) : retire(victims, forModel)
    })

  for (const { entry, files, missing = [], problem, recheck, sizeBytes } of deployments) {
    const { adapter, id, options, runtime } = entry
    const ownMs = runtime.idleUnloadSeconds === undefined ? idleUnloadMs : runtime.idleUnloadSeconds * 1000
    const model = yield* Model.make({
      entry,
      spec: { modelId: id, adapter, files, options },
      weightBytes: sizeBytes,
      processBytes,
      missing,
      ...(problem === undefined ? {} : { problem }),
      ...(recheck === undefined ? {} : { recheck }),
      idleUnloadMs: ownMs,
      makeRoom,
      holdsBackground: () => isAtLeast(rung(), "busy"),
      ...(onStatus === undefined ? {} : { onStatus }),
    })
    models.set(id, model)
  }
  for (const model of models.values()) {
    const { entry, status } = model.view()
    if (entry.runtime.load === "start" && status !== "failed")
      yield* Effect.forkScoped(Effect.exit(model.load(false)))
  }

  return ModelRegistry.of({
    all: () => [...models.values()].map((model) => model.view()),
    find: (id) => models.get(id)?.view(),
    model: (id) => models.get(id),
    run: (id, request, listener, options) => {
      const model = models.get(id)
      if (model === undefined) return Effect.fail(new ModelNotLoaded({ model: id }))
      // Background work is held in its line instead; what has begun goes on.
      if (rung() === "full" && options?.continues !== true && options?.urgency !== "background")
        return Effect.fail(new MemoryPressure({ retryAfterMs: Tree.pressureRetryMs }))
      return model.run(request, listener, options)
    },
  })
})

// The models that this node deploys, by id: their states, and typed handles that run requests. The api uses this service
// only; it has no host and no process. Redeployment decides which models there are, at the start and at each reload.
import { Context, Effect, Layer, Option } from "effect"
import { isAtLeast, type MemoryLevel } from "#domain/models/MemoryLevel.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { type InvalidRequest, MemoryPressure, ModelNotLoaded } from "#domain/wire/Errors.ts"
import type { End, EngineKind, Facts, Request } from "#engines/protocol/Verbs.ts"
import type { Device } from "../device/Device.ts"
import { MemoryPressureLevel } from "../device/MemoryPressureLevel.ts"
import type { Listener, RunError } from "../engine/EngineRequest.ts"
import * as Limits from "../Limits.ts"
import type { AnyModel, Model } from "./Model.ts"
import { type ModelHandle, type ModelRunOptions, ofKind, wrongKind } from "./ModelHandle.ts"
import type { LoadError } from "./ModelMessages.ts"
import type { ModelSnapshot, StatusChange } from "./ModelState.ts"
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
  /** Further files that those name: parts of a split GGUF, external data of ONNX graphs. Absolute. */
  readonly parts?: ReadonlyArray<string>
  /** Role → version of the file, for a reload to see what changed. */
  readonly versions?: Readonly<Record<string, FileVersion>>
  /** Sum of the files, for the memory ledger. */
  readonly sizeBytes: number
  /** Parameters of its GGUF weights, without an mmproj file. Absent for other formats and for files that are missing. */
  readonly parameters?: number
  /** Sources that have to be pulled before the model can load. */
  readonly missing?: ReadonlyArray<string>
  /** Why its files cannot be loaded, in words for operators. */
  readonly problem?: string
}

/** What the node does with models that are not used (nothing, by default), and a listener for changes. */
export interface RegistryOptions {
  /** For models whose catalog entry does not set it, milliseconds; 0 keeps them loaded. */
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

export class ModelRegistry extends Context.Service<
  ModelRegistry,
  {
    readonly all: () => ReadonlyArray<ModelSnapshot>
    readonly find: (id: string) => ModelSnapshot | undefined
    /**
     * A handle of the model with this id, or why there is none: it is not deployed, or it is of another kind.
     * @param name the caller's word for the model, for the error; the id if absent
     */
    readonly get: <K extends EngineKind>(
      id: string,
      kind: K,
      name?: string,
    ) => Effect.Effect<ModelHandle<K>, InvalidRequest | ModelNotLoaded>
    readonly model: (id: string) => AnyModel | undefined
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
  const models = new Map<string, AnyModel>()
  const pressure = Option.getOrUndefined(yield* Effect.serviceOption(MemoryPressureLevel))
  const level = (): MemoryLevel => pressure?.level() ?? "calm"
  const redeployment = yield* makeRedeployment(models, options, () => isAtLeast(level(), "busy"))
  yield* redeployment.apply(deployments)

  /** A class and not closures: one is made for every request. */
  class Handle<K extends EngineKind> implements ModelHandle<K> {
    readonly entry: ModelEntry
    readonly #kind: K

    constructor(kind: K, entry: ModelEntry) {
      this.#kind = kind
      this.entry = entry
    }

    current(): Model<K> | undefined {
      const model = models.get(this.entry.id)
      return model === undefined ? undefined : ofKind[this.#kind](model)
    }

    facts(): Facts<K> | undefined {
      return this.current()?.facts()
    }

    get loaded(): Effect.Effect<Facts<K>, LoadError | ModelNotLoaded> {
      return Effect.suspend(
        () => this.current()?.loaded ?? Effect.fail(new ModelNotLoaded({ model: this.entry.id })),
      )
    }

    isContended(user: string): boolean {
      return this.current()?.isContended(user) ?? false
    }

    /** Whether the model that a request waited for is gone and another has its id: then the request runs on that one. */
    #isReplaced(model: Model<K>, { _tag }: RunError | ModelNotLoaded): boolean {
      if (_tag !== "ModelUnavailable" && _tag !== "InsufficientMemory") return false
      const now = this.current()
      return now !== undefined && now !== model
    }

    run(
      request: Request<K>,
      listener: Listener<K>,
      options?: ModelRunOptions<K>,
    ): Effect.Effect<End<K>, RunError | ModelNotLoaded> {
      return Effect.suspend((): Effect.Effect<End<K>, RunError | ModelNotLoaded> => {
        const model = options?.on ?? this.current()
        if (model === undefined) return Effect.fail(new ModelNotLoaded({ model: this.entry.id }))
        // Background work waits in its queue instead; work that has begun goes on.
        if (level() === "full" && options?.continues !== true && options?.urgency !== "background")
          return Effect.fail(new MemoryPressure({ retryAfterMs: Limits.pressureRetryMs }))
        const running = model.run(request, listener, options)
        if (options?.on !== undefined) return running
        return Effect.catchIf(
          running,
          (error) => this.#isReplaced(model, error),
          () => this.run(request, listener, options),
        )
      })
    }
  }

  const registry = ModelRegistry.of({
    all: () => [...models.values()].map((model) => model.view()),
    find: (id) => models.get(id)?.view(),
    model: (id) => models.get(id),
    get: <K extends EngineKind>(id: string, kind: K, name = id) =>
      Effect.suspend((): Effect.Effect<ModelHandle<K>, InvalidRequest | ModelNotLoaded> => {
        const model = models.get(id)
        if (model === undefined) {
          const deployed = [...models.values()].filter((each) => each.kind === kind)
          return Effect.fail(
            new ModelNotLoaded({ model: name, deployed: deployed.map((each) => each.deployment.entry.id) }),
          )
        }
        const { entry } = model.deployment
        return model.kind === kind
          ? Effect.succeed(new Handle(kind, entry))
          : Effect.fail(wrongKind(name, kind))
      }),
  })
  return Context.make(ModelRegistry, registry).pipe(Context.add(Redeployment, redeployment))
})

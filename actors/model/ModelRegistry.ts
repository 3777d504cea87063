// The models that this node deploys, by id: their states, and typed handles that run requests. The api uses this service
// only; it has no host and no process. Redeployment decides which models there are, at the start and at each reload.
import { Context, Effect, Layer } from "effect"
import type { Deployment } from "#domain/models/Deployment.ts"
import { isAtLeast, type MemoryLevel } from "#domain/models/MemoryLevel.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { type InvalidRequest, MemoryPressure, ModelNotLoaded } from "#domain/wire/Errors.ts"
import type { End, EngineKind, Facts, Request } from "#engines/protocol/Verbs.ts"
import { Device } from "../device/Device.ts"
import type { RequestReader, RunError } from "../engine/EngineRequest.ts"
import * as Limits from "../Limits.ts"
import type { AnyModel, LoadError, Model } from "./Model.ts"
import { type ModelHandle, type ModelRunOptions, ofKind, wrongKind } from "./ModelHandle.ts"
import type { ModelSnapshot } from "./ModelSnapshot.ts"
import { makeRedeployment, Redeployment, type RedeploymentOptions } from "./Redeployment.ts"

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
    options: RedeploymentOptions = {},
  ): Layer.Layer<ModelRegistry | Redeployment, never, Device> =>
    Layer.effectContext(Effect.suspend(() => make(deployments, options)))
}

const make = Effect.fnUntraced(function* (
  deployments: ReadonlyArray<Deployment>,
  options: RedeploymentOptions,
) {
  const models = new Map<string, AnyModel>()
  const device = yield* Device
  const level = (): MemoryLevel => device.pressure().level
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
      reader: RequestReader<K>,
      options?: ModelRunOptions<K>,
    ): Effect.Effect<End<K>, RunError | ModelNotLoaded> {
      return Effect.suspend((): Effect.Effect<End<K>, RunError | ModelNotLoaded> => {
        const model = options?.on ?? this.current()
        if (model === undefined) return Effect.fail(new ModelNotLoaded({ model: this.entry.id }))
        // Background work waits in its queue instead; work that has begun goes on.
        if (level() === "full" && options?.continues !== true && options?.urgency !== "background")
          return Effect.fail(new MemoryPressure({ retryAfterMs: Limits.pressureRetryMs }))
        const running = model.run(request, reader, options)
        if (options?.on !== undefined) return running
        return Effect.catchIf(
          running,
          (error) => this.#isReplaced(model, error),
          () => this.run(request, reader, options),
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

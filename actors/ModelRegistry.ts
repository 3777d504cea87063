// The models this node deploys, by id: who is there, in what state, and the way in for requests.
// The api talks to this service only; it never holds a Model, a host or a process.
import { Context, Effect, Layer } from "effect"
import { ModelNotLoaded } from "#domain/Errors.ts"
import type { ModelEntry } from "#domain/Model.ts"
import type { Device } from "./Device.ts"
import type { Listener, RunError } from "./EngineHost.ts"
import { Model, type ModelView } from "./Model.ts"

/** A catalog entry together with where its files lie on this machine. */
export interface Deployment {
  readonly entry: ModelEntry
  /** Role → absolute path. */
  readonly files: Readonly<Record<string, string>>
  /** Sum of the files, for the memory ledger. */
  readonly sizeBytes: number
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
      /** Lets those who wait in person go first. */
      background?: boolean,
    ) => Effect.Effect<End, RunError | ModelNotLoaded>
    readonly model: (id: string) => Model | undefined
  }
>()("edgewise/actors/ModelRegistry") {
  /** Starts one Model actor per deployment; those with `load: start` begin to load at once. */
  static readonly layer = (
    deployments: ReadonlyArray<Deployment>,
  ): Layer.Layer<ModelRegistry, never, Device> =>
    Layer.effect(
      ModelRegistry,
      Effect.gen(function* () {
        const models = new Map<string, Model>()
        for (const { entry, files, sizeBytes } of deployments) {
          const { adapter, id, options, runtime } = entry
          const spec = { modelId: id, adapter, files, options, threads: runtime.threads }
          models.set(id, yield* Model.make(entry, spec, sizeBytes + processBytes))
        }
        for (const model of models.values()) {
          if (model.view().entry.runtime.load === "start")
            yield* Effect.forkScoped(Effect.exit(model.load(false)))
        }
        return ModelRegistry.of({
          all: () => [...models.values()].map((model) => model.view()),
          find: (id) => models.get(id)?.view(),
          model: (id) => models.get(id),
          run: (id, request, listener, background) => {
            const model = models.get(id)
            return model === undefined
              ? Effect.fail(new ModelNotLoaded({ model: id }))
              : model.run(request, listener, background)
          },
        })
      }),
    )
}

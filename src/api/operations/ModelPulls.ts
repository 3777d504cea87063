// Pulls of weights that operators have requested from this node: one for each model, shared by all concurrent requests
// for it. A pull ends when the last of these has disconnected; the bytes are kept, and the next pull resumes. The
// download itself is in src/weights.
import { constants } from "node:fs"
import { access } from "node:fs/promises"
import { Context, Effect, Fiber, Layer, type Scope } from "effect"
import { Drain } from "#actors/Drain.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { AtCapacity, Draining } from "#domain/wire/Errors.ts"
import type { BadCatalog } from "#weights/CatalogFile.ts"
import type { Hub } from "#weights/HubClient.ts"
import type { PullError } from "#weights/PullErrors.ts"
import { pullDefaults } from "#weights/PullFile.ts"
import { type PulledFile, pullModel } from "#weights/PullModel.ts"

export interface PullProgress {
  /** Name of the file without folders; empty before the first. */
  readonly file: string
  readonly receivedBytes: number
  /** Undefined until the hub has sent it. */
  readonly totalBytes: number | undefined
}

export interface SharedPull {
  readonly progress: () => PullProgress
  readonly end: Effect.Effect<ReadonlyArray<PulledFile>, BadCatalog | Draining | PullError>
}

interface ModelPullsOptions {
  /** Undefined if the node is configured without a hub. */
  readonly hub: Hub | undefined
  /** Directory of pulled weights. */
  readonly dir: string
  /** The node's data directory, above it. */
  readonly dataDir: string
  /** Path of the catalog, for errors. */
  readonly catalog: string
}

/** Models pulled at a time. A guess: more would share the same network and disk. */
const maxPulls = 4
const retryAfterMs = 30_000

/** Maximum age of `canPull`: /health is requested often. */
const writableForMs = 10_000

interface Running {
  readonly fiber: Fiber.Fiber<ReadonlyArray<PulledFile>, BadCatalog | Draining | PullError>
  progress: PullProgress
  /** Number of callers that wait for its end. */
  watching: number
}

export class ModelPulls extends Context.Service<
  ModelPulls,
  {
    /** The pull of this entry, started if none runs. Closing the scope leaves it. */
    readonly join: (entry: ModelEntry) => Effect.Effect<SharedPull, AtCapacity, Scope.Scope>
    /** False if no hub is configured. */
    readonly hasHub: boolean
    /** Whether there is a hub, and a folder where pulled weights can be written. */
    readonly canPull: Effect.Effect<boolean>
  }
>()("edgewise/api/ModelPulls") {
  static readonly layer = (options: ModelPullsOptions) =>
    Layer.effect(
      ModelPulls,
      Effect.suspend(() => make(options)),
    )
}

const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )

const make = Effect.fnUntraced(function* ({ catalog, dataDir, dir, hub }: ModelPullsOptions) {
  const scope = yield* Effect.scope
  const drain = yield* Drain
  const running = new Map<string, Running>()

  const start = Effect.fnUntraced(function* (key: string, entry: ModelEntry, to: Hub) {
    let one: Running | undefined
    const pull = pullModel({
      catalog,
      entry,
      settings: { ...pullDefaults, hub: to, dir },
      watch: (file) =>
        Effect.sync(() => {
          const show = (receivedBytes: number, totalBytes: number | undefined) => {
            if (one !== undefined) one.progress = { file, receivedBytes, totalBytes }
          }
          show(0, undefined)
          return { waiting: () => {}, retrying: () => {}, progress: show }
        }),
    })
    const stopping = Effect.flatMap(drain.closing, () => Effect.fail(new Draining()))
    const fiber = yield* Effect.forkIn(Effect.raceFirst(pull, stopping), scope)
    one = { fiber, progress: { file: "", receivedBytes: 0, totalBytes: undefined }, watching: 0 }
    const started = one
    running.set(key, started)
    fiber.addObserver(() => {
      if (running.get(key) === started) running.delete(key)
    })
    return started
  })

  const enter = Effect.fnUntraced(function* (entry: ModelEntry) {
    if (hub === undefined) return yield* Effect.die(new Error("asked to pull without a hub"))
    // A reload may have given the model other files meanwhile: that is another pull.
    const key = JSON.stringify([entry.id, entry.files])
    const known = running.get(key)
    if (known === undefined && running.size >= maxPulls)
      return yield* new AtCapacity({ model: entry.id, retryAfterMs })
    const one = known ?? (yield* start(key, entry, hub))
    one.watching++
    return { key, one }
  })

  const leave = ({ key, one }: { readonly key: string; readonly one: Running }) =>
    Effect.suspend(() => {
      if (--one.watching > 0) return Effect.void
      if (running.get(key) === one) running.delete(key)
      return Fiber.interrupt(one.fiber)
    })

  const writable = Effect.promise(async () => (await isWritable(dir)) || (await isWritable(dataDir)))
  const canWrite = yield* Effect.cachedWithTTL(writable, writableForMs)

  return ModelPulls.of({
    hasHub: hub !== undefined,
    canPull: hub === undefined ? Effect.succeed(false) : canWrite,
    join: (entry) =>
      Effect.map(Effect.acquireRelease(enter(entry), leave), ({ one }) => ({
        progress: () => one.progress,
        end: Effect.flatMap(Fiber.await(one.fiber), (exit) => exit),
      })),
  })
})

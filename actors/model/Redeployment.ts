// Deploys the models of the catalog, at the start and whenever the catalog is read again: models are added, removed,
// replaced or left as they are. Each model has its own scope. A removed or replaced model finishes the requests that it has
// begun; then its scope is closed. ModelRegistry reads the same map of models.
import { Context, Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import type { Deployment } from "#domain/models/Deployment.ts"
import { type Evictable, victimsOf } from "#domain/models/Eviction.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { Device } from "../device/Device.ts"
import type { DeviceExhausted } from "../device/DeviceActor.ts"
import * as Limits from "../Limits.ts"
import { changeOf } from "./DeploymentChange.ts"
import { type EvictUntilFits, problemAtStart, processBytes } from "./MemoryClaim.ts"
import { type AnyModel, Model } from "./Model.ts"
import type { ModelOptions } from "./ModelEngine.ts"
import type { ModelSnapshot } from "./ModelSnapshot.ts"

/** What the node does with models that are not used; nothing, by default. */
export interface RedeploymentOptions {
  /** For models whose catalog entry does not set it, milliseconds; 0 keeps them loaded. */
  readonly idleUnloadMs?: number
  /** Whether an idle model may be unloaded for another one, or for a node whose memory fills. */
  readonly evicts?: boolean
  /** Finds the weights of an entry as they are now; called before each load. Absent: they stay where they were. */
  readonly relocate?: (entry: ModelEntry) => Effect.Effect<Deployment>
  /** How long a removed or replaced model may go on with what it has begun, milliseconds. */
  readonly leaveAfterMs?: number
}

/** What one application of a catalog did, by model id. */
export interface Redeployed {
  readonly added: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  readonly changed: ReadonlyArray<string>
  /** Models that were not touched. */
  readonly unchanged: number
  /** Models that are deployed and cannot be loaded as their files are now. */
  readonly failed: ReadonlyArray<{ readonly model: string; readonly reason: string }>
  /** Removed models, and changed ones that have a new engine. */
  readonly replaced: ReadonlyArray<string>
}

export class Redeployment extends Context.Service<
  Redeployment,
  {
    /** Applies a catalog. Answers when new requests see it; removed and replaced models may still finish work. */
    readonly apply: (deployments: ReadonlyArray<Deployment>) => Effect.Effect<Redeployed>
    /** Completes when the loads that the catalog has begun so far (`load: start`) have ended, well or badly. */
    readonly loads: Effect.Effect<void>
    /** Removed and replaced models that have not ended. */
    readonly leaving: () => ReadonlyArray<ModelSnapshot>
    /** Ends those of one id, or all, without waiting for their requests; their ids, once their processes have ended. */
    readonly endLeaving: (id?: string) => Effect.Effect<ReadonlyArray<string>>
  }
>()("edgewise/actors/Redeployment") {}

interface Running {
  readonly model: AnyModel
  readonly scope: Scope.Closeable
}

interface Leaving extends Running {
  /** Done by an operator who does not want to wait. */
  readonly now: Deferred.Deferred<void>
  /** Done once its process has ended. */
  readonly gone: Deferred.Deferred<void>
}

/** A model of the kind that its entry names. */
const makeModel = (options: ModelOptions): Effect.Effect<AnyModel, never, Scope.Scope | Device> => {
  const { kind } = options.deployment.entry
  switch (kind) {
    case "text":
      return Model.make(kind, options)
    case "speech":
      return Model.make(kind, options)
    case "transcription":
      return Model.make(kind, options)
    case "embedding":
      return Model.make(kind, options)
    case "detection":
      return Model.make(kind, options)
  }
}

export const makeRedeployment = Effect.fnUntraced(function* (
  models: Map<string, AnyModel>,
  options: RedeploymentOptions,
  holdsBackground: () => boolean,
) {
  const { evicts = false, idleUnloadMs = 0, leaveAfterMs = Limits.leaveAfterMs, relocate } = options
  const parent = yield* Effect.scope
  const device = yield* Device
  /** Models are started in it, also at a reload: what surrounds that request or signal is not theirs. */
  const context = yield* Effect.context<never>()
  const running = new Map<string, Running>()
  const leaving = new Set<Leaving>()
  const loads = new Set<Fiber.Fiber<unknown>>()

  const evictable = (deviceId: string, except: string): ReadonlyArray<Evictable> =>
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

  /** Idle models of the device that free enough, or undefined where all of them would not. */
  const victims = (forModel: string, deviceId: string, missingBytes: number) =>
    missingBytes <= 0 ? [] : evicts ? victimsOf(evictable(deviceId, forModel), missingBytes) : undefined

  // Memory of leaving models comes back by itself, at the latest after `leaveAfterMs`: the load waits for it, and idle
  // models are unloaded for the rest. No deadlock: a load waits only for models that hold memory, and those do not wait.
  const evictUntilFits: EvictUntilFits = (forModel, { deviceId, freeBytes, wantedBytes }: DeviceExhausted) =>
    Effect.gen(function* () {
      const going = [...leaving].filter(({ model }) => model.claimedBytes(deviceId) > 0)
      const missingBytes =
        wantedBytes - freeBytes - going.reduce((sum, { model }) => sum + model.claimedBytes(deviceId), 0)
      if (victims(forModel, deviceId, missingBytes) === undefined) return false
      yield* Effect.forEach(going, ({ gone }) => Deferred.await(gone), { discard: true })
      return yield* retire(victims(forModel, deviceId, missingBytes) ?? [], forModel)
    })

  const start = Effect.fnUntraced(function* (deployment: Deployment, before: AnyModel | undefined) {
    const { id, runtime } = deployment.entry
    const scope = yield* Scope.fork(parent)
    const viewBefore = before?.view()
    const model = yield* makeModel({
      deployment,
      processBytes,
      idleUnloadMs: runtime.idleUnloadSeconds === undefined ? idleUnloadMs : runtime.idleUnloadSeconds * 1000,
      evictUntilFits,
      holdsBackground,
      ...(before === undefined || viewBefore === undefined
        ? {}
        : { meters: viewBefore.meters, output: viewBefore.output, held: before.isHeld }),
      ...(relocate === undefined ? {} : { relocate }),
    }).pipe(Scope.provide(scope), Effect.provideService(Device, device))
    const canLoad = !model.isHeld && model.view().status !== "failed"
    if (canLoad && (runtime.load === "start" || viewBefore?.host !== undefined)) {
      const load = yield* Effect.forkIn(Effect.exit(model.load(false)), scope)
      loads.add(load)
      load.addObserver(() => loads.delete(load))
    }
    running.set(id, { model, scope })
  })

  const untilQuiet = (model: AnyModel) =>
    Effect.gen(function* () {
      // Requests that have found the model and not reached it yet do so within the first pause.
      do yield* Effect.sleep(Limits.leavingCheckMs)
      while (!model.isQuiet())
    })

  /** From now on loads count on its memory. `end` has it end. */
  const depart = ({ model, scope }: Running): Leaving => {
    const one = { model, scope, now: Deferred.makeUnsafe<void>(), gone: Deferred.makeUnsafe<void>() }
    model.leave()
    leaving.add(one)
    return one
  }

  const end = Effect.fnUntraced(function* (one: Leaving) {
    const { model, scope } = one
    const { id } = model.deployment.entry
    yield* Effect.gen(function* () {
      const inTime = yield* Effect.raceFirst(untilQuiet(model), Deferred.await(one.now)).pipe(
        Effect.timeoutOption(leaveAfterMs),
      )
      const gauges = model.view().host?.gauges()
      yield* Scope.close(scope, Exit.void)
      if (Option.isNone(inTime)) {
        const facts = { model: id, seconds: leaveAfterMs / 1000, cut: gauges?.open ?? 0 }
        yield* Effect.logWarning("a removed or replaced model was ended before its requests were").pipe(
          Effect.annotateLogs(facts),
        )
      }
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          leaving.delete(one)
          Deferred.doneUnsafe(one.gone, Effect.void)
        }),
      ),
      Effect.forkIn(parent),
    )
  })

  const apply = Effect.fnUntraced(function* (deployments: ReadonlyArray<Deployment>) {
    const wanted = new Set(deployments.map(({ entry }) => entry.id))
    const removed = [...running.keys()].filter((id) => !wanted.has(id))
    const steps = deployments.map((deployment) => {
      const before = running.get(deployment.entry.id)?.model
      const change =
        before === undefined
          ? "engine"
          : changeOf(before.deployment, deployment, before.view().host !== undefined)
      return { deployment, before, change }
    })
    const idsOf = (which: (step: (typeof steps)[number]) => boolean) =>
      steps.filter(which).map(({ deployment }) => deployment.entry.id)
    const added = idsOf(({ before }) => before === undefined)
    const changed = idsOf(({ before, change }) => before !== undefined && change !== "none")
    const replaced = [
      ...removed,
      ...idsOf(({ before, change }) => before !== undefined && change === "engine"),
    ]
    // All of them, before the first new one begins to load.
    const going = replaced.map((id) => depart(running.get(id)!))
    for (const id of removed) running.delete(id)
    for (const { before, change, deployment } of steps) {
      if (change === "metadata") before?.amend(deployment)
      if (change === "engine") yield* start(deployment, before)
    }
    // Callers list models in this order: the catalog's.
    models.clear()
    for (const { entry } of deployments) models.set(entry.id, running.get(entry.id)!.model)
    for (const one of going) yield* end(one)
    const failed: Array<{ readonly model: string; readonly reason: string }> = []
    for (const deployment of deployments) {
      const reason = yield* problemAtStart(device, deployment, processBytes)
      if (reason !== undefined) failed.push({ model: deployment.entry.id, reason })
    }
    return {
      added,
      removed,
      changed,
      unchanged: deployments.length - added.length - changed.length,
      failed,
      replaced,
    } satisfies Redeployed
    // Half of a catalog is never applied, whatever becomes of the caller.
  }, Effect.uninterruptible)

  return Redeployment.of({
    apply: (deployments) => Effect.updateContext(apply(deployments), () => context),
    loads: Effect.suspend(() => Effect.forEach([...loads], (load) => Fiber.await(load), { discard: true })),
    leaving: () => [...leaving].map(({ model }) => model.view()),
    endLeaving: (id) =>
      Effect.suspend(() => {
        const ended = [...leaving].filter(({ model }) => id === undefined || model.deployment.entry.id === id)
        for (const { now } of ended) Deferred.doneUnsafe(now, Effect.void)
        return Effect.as(
          Effect.forEach(ended, ({ gone }) => Deferred.await(gone), { discard: true }),
          ended.map(({ model }) => model.deployment.entry.id),
        )
      }),
  })
})

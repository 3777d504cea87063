// The operators' actions on a running node: load and unload models, read the catalog again, read and purge the device's
// memory. Every handler here requires the superadmin scope first.
import { Clock, Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Redeployment } from "#actors/model/Redeployment.ts"
import { freedGb, memoryRecord, toMb, usedMemory } from "#domain/models/DeviceMemory.ts"
import {
  CatalogRefused,
  Forbidden,
  ModelBusy,
  ModelNotLoaded,
  ModelUnavailable,
} from "#domain/wire/Errors.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { Caller } from "#services/Caller.ts"
import type { BadRegions } from "#store/files/RegionsFile.ts"
import type { BadCatalog } from "#weights/CatalogFile.ts"
import { bodyBytes, readJson } from "../http/JsonBody.ts"
import { CatalogReload } from "./CatalogReload.ts"
import { devicesNow, gpuRecord, processRecord, totalMemory } from "./DeviceRecords.ts"
import { timestamp } from "./Health.ts"
import {
  type GpuMemoryRecord,
  type GpuStatusRecord,
  type LoadRecord,
  LoadRequest,
  type PurgeRecord,
  PurgeRequest,
  type UnloadAllRecord,
  type UnloadRecord,
  UnloadRequest,
} from "./OperatorRecords.ts"

/** Fails unless the caller has the superadmin scope. */
export const operator = Effect.flatMap(Caller, ({ scope }) =>
  scope === "superadmin" ? Effect.void : Effect.fail(new Forbidden({ scope: "superadmin" })),
)

const readLoad = readJson(LoadRequest)
const readUnload = readJson(UnloadRequest)
const readPurge = readJson(PurgeRequest)

/** Longest reason shown for a load that failed. A guess: a few lines. */
const maxReasonLength = 500

type Request = HttpServerRequest.HttpServerRequest

const modelOf = (id: string) =>
  Effect.flatMap(ModelRegistry, (registry) => {
    const model = registry.model(id)
    return model === undefined ? Effect.fail(new ModelNotLoaded({ model: id })) : Effect.succeed(model)
  })

/** Lines of an error about a refused file; the files' readers limit their number. */
const mistakesOf = ({ lines, message }: BadCatalog | BadRegions): ReadonlyArray<string> => lines ?? [message]

/** Answers when the model is ready, or with the reason why it is not: operators may read it. */
export const loadModel = Effect.fn("Operations.load")(function* (request: Request) {
  yield* operator
  const { force_reload = false, model_name } = yield* readLoad(request)
  const model = yield* modelOf(model_name)
  const { summary } = yield* Effect.catchTag(model.load(force_reload), "ModelUnavailable", (error) => {
    const reason = model.view().lastFailure.slice(0, maxReasonLength)
    return Effect.fail(reason === "" ? error : new ModelUnavailable({ ...error, reason }))
  })
  const message = `${model_name} is loaded: ${summary}`
  const record: typeof LoadRecord.Type = { status: "success", model: model_name, force_reload, message }
  return record
})

/** Reads the catalog again and answers with what changed; 400 with what is wrong in it, and then nothing has changed. */
export const reloadCatalog = Effect.fn("Operations.reload")(function* () {
  yield* operator
  return yield* Effect.mapError((yield* CatalogReload).reload, (error) =>
    error._tag === "Draining"
      ? error
      : new CatalogRefused({ problem: error.message, mistakes: mistakesOf(error) }),
  )
})

const unloadedRecord = (model: string, message: string): typeof UnloadRecord.Type => ({
  status: "success",
  model,
  message,
})

/** Answers when the model's process has ended and its memory is free; 500 if that fails. */
export const unloadModel = Effect.fn("Operations.unload")(function* (request: Request) {
  yield* operator
  const { model_name } = yield* readUnload(request)
  // Its predecessor as well, if a reload has replaced or removed it: it still has memory.
  const ended = yield* (yield* Redeployment).endLeaving(model_name)
  const deployed = (yield* ModelRegistry).model(model_name)
  if (deployed === undefined && ended.length > 0) {
    const message = `${model_name} was removed by a reload; its engine has ended`
    return unloadedRecord(model_name, message)
  }
  const { freedBytes, tookMs, was } = yield* (yield* modelOf(model_name)).unload
  const message = was
    ? `${model_name} is unloaded: ${toMb(freedBytes)} MB given back in ${Math.round(tookMs)} ms`
    : `${model_name} was not loaded`
  return unloadedRecord(model_name, message)
})

const unloadEverything = Effect.gen(function* () {
  const registry = yield* ModelRegistry
  const unloaded: Array<string> = [...(yield* (yield* Redeployment).endLeaving())]
  const errors: Array<string> = []
  yield* Effect.forEach(
    // One that is loading, or has failed and would be tried again, must not load by itself either.
    registry
      .all()
      .filter(({ status }) => status !== "unloaded"),
    ({ entry }) =>
      modelOf(entry.id).pipe(
        Effect.flatMap((model) => model.unload),
        Effect.match({
          onSuccess: ({ was }) => {
            if (was) unloaded.push(entry.id)
          },
          onFailure: (error) => {
            errors.push(detailOf(error))
          },
        }),
      ),
    { concurrency: "unbounded", discard: true },
  )
  return { unloaded: [...new Set(unloaded)].sort(), errors }
})

export const unloadAll = Effect.fn("Operations.unloadAll")(function* () {
  yield* operator
  const { errors, unloaded } = yield* unloadEverything
  const record: typeof UnloadAllRecord.Type = {
    status: errors.length === 0 ? "success" : "partial",
    unloaded_models: unloaded,
    errors,
    total_unloaded: unloaded.length,
  }
  return record
})

const now = Effect.map(Clock.currentTimeMillis, timestamp)

export const gpuStatus = Effect.fn("Operations.gpuStatus")(function* () {
  yield* operator
  const { devices, processes } = yield* devicesNow(false)
  const record: typeof GpuStatusRecord.Type = {
    status: "success",
    timestamp: yield* now,
    gpus: devices.map(gpuRecord),
    processes: processes.map(processRecord),
    total_gpus: devices.length,
  }
  return record
})

export const gpuMemory = Effect.fn("Operations.gpuMemory")(function* () {
  yield* operator
  const { devices } = yield* devicesNow(false)
  const record: typeof GpuMemoryRecord.Type = {
    status: "success",
    timestamp: yield* now,
    memory: devices.map(({ memory }) => memoryRecord(memory)),
  }
  return record
})

export const gpuPurge = Effect.fn("Operations.gpuPurge")(function* (request: Request) {
  yield* operator
  const body = (yield* bodyBytes(request)).length === 0 ? {} : yield* readPurge(request)
  const force = body.force ?? false
  const views = [...(yield* ModelRegistry).all(), ...(yield* Redeployment).leaving()]
  const before = totalMemory(yield* devicesNow(true))
  const busy = views.flatMap(({ entry, host }) => ((host?.gauges().open ?? 0) > 0 ? [entry.id] : []))
  if (busy.length > 0 && !force) return yield* new ModelBusy({ models: busy })
  const { errors, unloaded } = yield* unloadEverything
  const after = totalMemory(yield* devicesNow(true))
  const record: typeof PurgeRecord.Type = {
    status: errors.length === 0 ? "success" : "partial",
    timestamp: yield* now,
    actions: unloaded.map((id) => `unloaded ${id}: its process has ended`),
    memory_before: usedMemory(before),
    memory_after: usedMemory(after),
    memory_freed_gb: freedGb(before, after),
    models_unloaded: unloaded,
    errors,
    recommendation:
      unloaded.length === 0 ? "Nothing was loaded" : "Load the models that are needed with /v1/models/load",
  }
  return record
})

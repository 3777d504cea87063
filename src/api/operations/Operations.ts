// What operators may do to a running node: load and unload models, read the catalog again, read and purge the device's memory.
// Every handler here asks for the superadmin scope first.
import { Clock, Effect, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Redeployment } from "#actors/model/Redeployment.ts"
import { freedGb, memoryRecord, toMb, usedMemory } from "#domain/models/DeviceMemory.ts"
import { Forbidden, InvalidRequest, ModelBusy, ModelNotLoaded } from "#domain/wire/Errors.ts"
import { detailOf, problemOf, problemResponse } from "#http/ErrorBody.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import type { BadRegions } from "#store/files/RegionsFile.ts"
import type { BadCatalog } from "#weights/CatalogFile.ts"
import { Caller } from "../access/Authentication.ts"
import { readJson } from "../http/JsonBody.ts"
import { CatalogReload } from "./CatalogReload.ts"
import { devicesNow, gpuRecord, processRecord, totalMemory } from "./DeviceRecords.ts"
import { timestamp } from "./Health.ts"

/** Fails unless the caller has the superadmin scope. */
export const operator = Effect.flatMap(Caller, ({ scope }) =>
  scope === "superadmin" ? Effect.void : Effect.fail(new Forbidden({ scope: "superadmin" })),
)

export const LoadRequest = Schema.Struct({
  model_name: Schema.NonEmptyString,
  force_reload: Schema.optionalKey(Schema.Boolean),
})
export const UnloadRequest = Schema.Struct({ model_name: Schema.NonEmptyString })
export const PurgeRequest = Schema.Struct({ force: Schema.optionalKey(Schema.Boolean) })

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

/** Lines of a file that is refused; the files' readers limit their number. */
const mistakesOf = ({ lines, message }: BadCatalog | BadRegions): ReadonlyArray<string> => lines ?? [message]

/** Answers when the model answers, or with why it does not: operators may know. */
export const loadModel = Effect.fn("Operations.load")(function* (request: Request) {
  yield* operator
  const { force_reload = false, model_name } = yield* readLoad(request)
  const model = yield* modelOf(model_name)
  return yield* model.load(force_reload).pipe(
    Effect.map(({ summary }) =>
      HttpServerResponse.jsonUnsafe({
        status: "success",
        model: model_name,
        force_reload,
        message: `${model_name} is loaded: ${summary}`,
      }),
    ),
    Effect.catchTag("ModelUnavailable", (error) =>
      Effect.map(CurrentRequest, (notes) => {
        notes.failure = error
        const { detail, ...problem } = problemOf(error)
        const { lastFailure } = model.view()
        const why = lastFailure === "" ? detail : `${detail}: ${lastFailure.slice(0, maxReasonLength)}`
        return problemResponse({ ...problem, detail: why })
      }),
    ),
  )
})

/** Reads the catalog again and answers with what changed; 400 with what is wrong in it, and then nothing has. */
export const reloadCatalog = Effect.fn("Operations.reload")(function* (_request: Request) {
  yield* operator
  return yield* Effect.matchEffect((yield* CatalogReload).reload, {
    onSuccess: (record) => Effect.succeed(HttpServerResponse.jsonUnsafe(record)),
    onFailure: (error) =>
      error._tag === "Draining"
        ? Effect.fail(error)
        : Effect.map(CurrentRequest, (notes) => {
            const refused = new InvalidRequest({ field: "", problem: error.message })
            notes.failure = refused
            const problem = problemOf(refused)
            return problemResponse({
              ...problem,
              body: { detail: problem.detail, mistakes: mistakesOf(error) },
            })
          }),
  })
})

/** Answers when the model's process is gone and its memory with it; 500 where it is not. */
export const unloadModel = Effect.fn("Operations.unload")(function* (request: Request) {
  yield* operator
  const { model_name } = yield* readUnload(request)
  // Its predecessor as well, where a reload has replaced or removed it: it still has memory.
  const ended = yield* (yield* Redeployment).endLeaving(model_name)
  const deployed = (yield* ModelRegistry).model(model_name)
  if (deployed === undefined && ended.length > 0) {
    const message = `${model_name} was removed by a reload; its engine has ended`
    return HttpServerResponse.jsonUnsafe({ status: "success", model: model_name, message })
  }
  const { freedBytes, tookMs, was } = yield* (yield* modelOf(model_name)).unload
  const message = was
    ? `${model_name} is unloaded: ${toMb(freedBytes)} MB given back in ${Math.round(tookMs)} ms`
    : `${model_name} was not loaded`
  return HttpServerResponse.jsonUnsafe({ status: "success", model: model_name, message })
})

const unloadEverything = Effect.gen(function* () {
  const registry = yield* ModelRegistry
  const unloaded: Array<string> = [...(yield* (yield* Redeployment).endLeaving())]
  const errors: Array<string> = []
  yield* Effect.forEach(
    // One that is loading, or has failed and would be tried again, must not come back by itself either.
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

export const unloadAll = Effect.fn("Operations.unloadAll")(function* (_request: Request) {
  yield* operator
  const { errors, unloaded } = yield* unloadEverything
  return HttpServerResponse.jsonUnsafe({
    status: errors.length === 0 ? "success" : "partial",
    unloaded_models: unloaded,
    errors,
    total_unloaded: unloaded.length,
  })
})

const now = Effect.map(Clock.currentTimeMillis, timestamp)

export const gpuStatus = Effect.fn("Operations.gpuStatus")(function* (_request: Request) {
  yield* operator
  const { devices, processes } = yield* devicesNow(false)
  return HttpServerResponse.jsonUnsafe({
    status: "success",
    timestamp: yield* now,
    gpus: devices.map(gpuRecord),
    processes: processes.map(processRecord),
    total_gpus: devices.length,
  })
})

export const gpuMemory = Effect.fn("Operations.gpuMemory")(function* (_request: Request) {
  yield* operator
  const { devices } = yield* devicesNow(false)
  return HttpServerResponse.jsonUnsafe({
    status: "success",
    timestamp: yield* now,
    memory: devices.map(({ memory }) => memoryRecord(memory)),
  })
})

export const gpuPurge = Effect.fn("Operations.gpuPurge")(function* (request: Request) {
  yield* operator
  const body = Number(request.headers["content-length"] ?? 0) === 0 ? {} : yield* readPurge(request)
  const force = body.force ?? false
  const views = [...(yield* ModelRegistry).all(), ...(yield* Redeployment).leaving()]
  const before = totalMemory(yield* devicesNow(true))
  const busy = views.flatMap(({ entry, host }) => ((host?.gauges().open ?? 0) > 0 ? [entry.id] : []))
  if (busy.length > 0 && !force) return yield* new ModelBusy({ models: busy })
  const { errors, unloaded } = yield* unloadEverything
  const after = totalMemory(yield* devicesNow(true))
  return HttpServerResponse.jsonUnsafe({
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
  })
})

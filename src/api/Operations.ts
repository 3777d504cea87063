// What operators may do to a running node: load and unload models, read and purge the device's memory.
// Every handler here asks for the superadmin scope first.
import { Clock, Effect, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Device } from "#actors/Device.ts"
import { ModelRegistry } from "#actors/ModelRegistry.ts"
import { residentBytesOf } from "#actors/ResidentMemory.ts"
import {
  type DeviceMemory,
  freedGb,
  memoryRecord,
  statusMemory,
  toMb,
  usedMemory,
} from "#domain/DeviceMemory.ts"
import { Forbidden, ModelBusy, ModelNotLoaded } from "#domain/Errors.ts"
import { Caller } from "./Authentication.ts"
import { timestamp } from "./Health.ts"
import { readJson } from "./JsonBody.ts"

const operator = Effect.flatMap(Caller, ({ scope }) =>
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

type Request = HttpServerRequest.HttpServerRequest

const modelOf = (id: string) =>
  Effect.flatMap(ModelRegistry, (registry) => {
    const model = registry.model(id)
    return model === undefined ? Effect.fail(new ModelNotLoaded({ model: id })) : Effect.succeed(model)
  })

/** Answers when the model answers. */
export const loadModel = Effect.fn("Operations.load")(function* (request: Request) {
  yield* operator
  const { force_reload = false, model_name } = yield* readLoad(request)
  const facts = yield* (yield* modelOf(model_name)).load(force_reload)
  const message = `${model_name} is loaded: ${facts.summary}`
  return HttpServerResponse.jsonUnsafe({ status: "success", model: model_name, force_reload, message })
})

/** Answers when the model's process is gone, which is when its memory is back. */
export const unloadModel = Effect.fn("Operations.unload")(function* (request: Request) {
  yield* operator
  const { model_name } = yield* readUnload(request)
  const was = yield* (yield* modelOf(model_name)).unload
  const message = was ? `${model_name} is unloaded` : `${model_name} was not loaded`
  return HttpServerResponse.jsonUnsafe({ status: "success", model: model_name, message })
})

const unloadEverything = Effect.gen(function* () {
  const registry = yield* ModelRegistry
  const inMemory = registry.all().filter(({ status }) => status === "loaded" || status === "loading")
  const unloaded: Array<string> = []
  const errors: Array<string> = []
  yield* Effect.forEach(
    inMemory,
    ({ entry }) =>
      modelOf(entry.id).pipe(
        Effect.flatMap((model) => model.unload),
        Effect.match({
          onSuccess: () => void unloaded.push(entry.id),
          onFailure: () => void errors.push(`${entry.id} could not be unloaded`),
        }),
      ),
    { concurrency: "unbounded", discard: true },
  )
  return { unloaded: unloaded.sort(), errors }
})

export const unloadAll = Effect.fn("Operations.unloadAll")(function* (_request: Request) {
  yield* operator
  const { errors, unloaded } = yield* unloadEverything
  return HttpServerResponse.jsonUnsafe({
    status: "success",
    unloaded_models: unloaded,
    errors,
    total_unloaded: unloaded.length,
  })
})

/** Engine processes and this one, with what they hold now. */
const processes = Effect.map(ModelRegistry, (registry) => {
  const engines = registry.all().flatMap(({ entry, host }) => {
    const pid = host?.gauges().pid
    return pid === undefined ? [] : [{ pid, name: `engine ${entry.id}`, bytes: residentBytesOf(pid) }]
  })
  return [{ pid: process.pid, name: "edgewise", bytes: process.memoryUsage.rss() }, ...engines]
})

const deviceMemory: Effect.Effect<DeviceMemory, never, Device | ModelRegistry> = Effect.gen(function* () {
  const { totalBytes } = yield* (yield* Device).reading
  const usedBytes = (yield* processes).reduce((sum, { bytes }) => sum + bytes, 0)
  return { totalBytes, usedBytes }
})

const now = Effect.map(Clock.currentTimeMillis, timestamp)

export const gpuStatus = Effect.fn("Operations.gpuStatus")(function* (_request: Request) {
  yield* operator
  const device = yield* Device
  const { claimedThreads, index, name, threads } = yield* device.reading
  const memory = yield* deviceMemory
  return HttpServerResponse.jsonUnsafe({
    status: "success",
    timestamp: yield* now,
    gpus: [
      {
        index,
        name,
        memory: statusMemory(memory),
        utilization: {
          gpu_percent: yield* device.utilization,
          memory_percent: Math.round(usedMemory(memory).percent_used),
        },
        temperature_c: yield* device.temperature,
        threads,
        claimed_threads: claimedThreads,
      },
    ],
    processes: (yield* processes).map(({ bytes, name, pid }) => ({ pid, name, memory_mb: toMb(bytes) })),
    total_gpus: 1,
  })
})

export const gpuMemory = Effect.fn("Operations.gpuMemory")(function* (_request: Request) {
  yield* operator
  return HttpServerResponse.jsonUnsafe({
    status: "success",
    timestamp: yield* now,
    memory: [memoryRecord(yield* deviceMemory)],
  })
})

export const gpuPurge = Effect.fn("Operations.gpuPurge")(function* (request: Request) {
  yield* operator
  const body = Number(request.headers["content-length"] ?? 0) === 0 ? {} : yield* readPurge(request)
  const force = body.force ?? false
  const registry = yield* ModelRegistry
  const busy = registry.all().flatMap(({ entry, host }) => ((host?.gauges().open ?? 0) > 0 ? [entry.id] : []))
  if (busy.length > 0 && !force) return yield* new ModelBusy({ models: busy })
  const before = yield* deviceMemory
  const { errors, unloaded } = yield* unloadEverything
  const after = yield* deviceMemory
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

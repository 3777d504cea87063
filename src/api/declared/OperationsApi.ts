// The operators' endpoints (protocol 12).
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import { errors, eventStream, OwnHeaders, StreamEvents } from "#http/Declared.ts"
import { Authentication, TakesOperatorToken } from "../access/Authentication.ts"
import { ReloadRecord } from "../operations/CatalogReload.ts"
import { ModelLogsRecord } from "../operations/ModelLogs.ts"
import { NodeTreeRecord } from "../operations/NodeTree.ts"
import {
  GpuMemoryRecord,
  GpuStatusRecord,
  LoadRecord,
  LoadRequest,
  PullEvent,
  PullRequest,
  PurgeRecord,
  PurgeRequest,
  UnloadAllRecord,
  UnloadRecord,
  UnloadRequest,
} from "../operations/OperatorRecords.ts"
import { QueryCheck } from "./QueryErrors.ts"
import { ofJson, ofModels, streamHeaders, text } from "./SharedReplies.ts"

const ofOperators = ["Forbidden"] as const

export class OperationsGroup extends HttpApiGroup.make("Operations")
  .add(
    HttpApiEndpoint.post("loadModel", "/v1/models/load", {
      payload: LoadRequest,
      success: LoadRecord,
      error: errors(
        ...ofOperators,
        ...ofJson,
        ...ofModels,
        "ModelUnavailable",
        "InsufficientMemory",
        "MemoryPressure",
        "Draining",
      ),
    }),
    HttpApiEndpoint.post("unloadModel", "/v1/models/unload", {
      payload: UnloadRequest,
      success: UnloadRecord,
      error: errors(...ofOperators, ...ofJson, ...ofModels, "UnloadFailed", "ModelUnavailable"),
    }),
    HttpApiEndpoint.get("modelLogs", "/v1/models/logs", {
      query: { model: text, after: text },
      success: ModelLogsRecord,
      error: errors(...ofOperators, ...ofModels),
    }).middleware(QueryCheck),
    HttpApiEndpoint.post("unloadAll", "/v1/models/unload-all", {
      success: UnloadAllRecord,
      error: errors(...ofOperators, ...ofJson),
    }),
    HttpApiEndpoint.post("pullModel", "/v1/models/pull", {
      payload: PullRequest,
      success: eventStream,
      error: errors(...ofOperators, ...ofJson, ...ofModels, "AtCapacity", "Draining"),
    })
      .annotate(StreamEvents, PullEvent)
      .annotate(OwnHeaders, streamHeaders),
    HttpApiEndpoint.post("reloadCatalog", "/v1/models/reload", {
      success: ReloadRecord,
      error: errors(...ofOperators, ...ofJson, "CatalogRefused", "Draining"),
    }),
    HttpApiEndpoint.get("gpuStatus", "/v1/gpu/status", {
      success: GpuStatusRecord,
      error: errors(...ofOperators),
    }),
    HttpApiEndpoint.get("gpuMemory", "/v1/gpu/memory", {
      success: GpuMemoryRecord,
      error: errors(...ofOperators),
    }),
    HttpApiEndpoint.post("gpuPurge", "/v1/gpu/purge", {
      payload: PurgeRequest,
      success: PurgeRecord,
      error: errors(...ofOperators, ...ofJson, "ModelBusy"),
    }),
    HttpApiEndpoint.get("nodeTree", "/v1/node/tree", {
      success: NodeTreeRecord,
      error: errors(...ofOperators),
    }),
  )
  .annotate(TakesOperatorToken, true)
  .middleware(Authentication) {}

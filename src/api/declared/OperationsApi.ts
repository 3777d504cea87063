// The operators' endpoints (protocol 12).
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { errors, eventStream, OwnHeaders, StreamEvents } from "#http/Declared.ts"
import { Authentication, TakesOperatorToken } from "../access/Authentication.ts"
import { ReloadRecord } from "../operations/CatalogReload.ts"
import { DeletionRecord } from "../operations/Deletion.ts"
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
const ofDeletion = ["InvalidRequest", "AccountNotFound", "JobNotFound"] as const

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
      error: errors(...ofOperators),
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
      error: errors(...ofOperators, "CatalogRefused", "Draining"),
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
    HttpApiEndpoint.delete("deleteOrg", "/v1/orgs", {
      query: { org: text },
      success: DeletionRecord,
      error: errors(...ofOperators, ...ofDeletion),
    }).middleware(QueryCheck),
    HttpApiEndpoint.delete("deleteUser", "/v1/orgs/users", {
      query: { org: text, user: text },
      success: DeletionRecord,
      error: errors(...ofOperators, ...ofDeletion),
    }).middleware(QueryCheck),
    HttpApiEndpoint.delete("deleteJob", "/v1/orgs/jobs", {
      query: { org: text, job_id: text },
      success: DeletionRecord,
      error: errors(...ofOperators, ...ofDeletion),
    }).middleware(QueryCheck),
    HttpApiEndpoint.delete("deleteAnswers", "/v1/orgs/answers", {
      query: { org: text },
      success: DeletionRecord,
      error: errors(...ofOperators, ...ofDeletion),
    }).middleware(QueryCheck),
    HttpApiEndpoint.get("nodeTree", "/v1/node/tree", {
      success: NodeTreeRecord,
      error: errors(...ofOperators),
    }),
  )
  .annotate(TakesOperatorToken, true)
  .middleware(Authentication) {}

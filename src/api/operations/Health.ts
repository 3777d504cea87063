// GET /health: the record, the rule that decides the status, the handler.
import { Clock, Effect, Option, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { CallPeers } from "#actors/calls/CallPeers.ts"
import { Drain } from "#actors/Drain.ts"
import { Device } from "#actors/device/Device.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { ModelStatus } from "#actors/model/ModelState.ts"
import { NodeTree } from "#actors/NodeTree.ts"
import { lostUnder } from "#actors/TreeNode.ts"
import { NodeIdentity } from "#http/NodeIdentity.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { StorePresence } from "#store/sql/StorePresence.ts"
import { identify } from "../access/Authentication.ts"
import { ModelPulls } from "./ModelPulls.ts"
import { failuresOf } from "./Models.ts"

export const HealthRecord = Schema.Struct({
  status: Schema.Literals(["healthy", "degraded", "unhealthy"]),
  node: Schema.String,
  runtime: Schema.String,
  timestamp: Schema.String,
  features: Schema.Struct({
    dynamic_loading: Schema.Boolean,
    huggingface_support: Schema.Boolean,
    /** Whether calls of browsers are taken now. */
    webrtc_calls: Schema.Boolean,
  }),
  backend: Schema.Struct({
    healthy: Schema.Boolean,
    info: Schema.Struct({
      name: Schema.String,
      version: Schema.String,
      extensions: Schema.Array(Schema.String),
    }),
  }),
  /** Why the node is not healthy; for a credential with the superadmin scope only. */
  details: Schema.optionalKey(
    Schema.Struct({
      failures: Schema.Record(Schema.String, Schema.String),
      draining: Schema.Boolean,
      store: Schema.Boolean,
      /** Parts of the node that have given up, by their place in the tree: the last crash, and what follows. */
      gave_up: Schema.Record(Schema.String, Schema.String),
    }),
  ),
})

interface NodeState {
  readonly models: ReadonlyArray<ModelStatus>
  readonly draining: boolean
  readonly storeIsThere: boolean
  /** Whether nothing can be loaded any more. */
  readonly hostIsLost: boolean
  /** Whether a part of the node has given up. */
  readonly hasLost: boolean
}

/**
 * Unhealthy: draining, or every model has failed or cannot be loaded, so no request can be served. Degraded: some model has failed, or a
 * part of the node has given up, or the database that nodes share is unreachable: running work continues, requests that need an
 * account are answered 503. A model that has not been requested yet is not a failure.
 */
const healthOf = ({ draining, hasLost, hostIsLost, models, storeIsThere }: NodeState) => {
  const cannotServe = (status: ModelStatus) => status === "failed" || (hostIsLost && status !== "loaded")
  if (draining || (models.length > 0 && models.every(cannotServe))) return "unhealthy"
  return hasLost || !storeIsThere || models.includes("failed") ? "degraded" : "healthy"
}

/** ISO 8601 without a zone suffix, in UTC, as the record wants it. */
export const timestamp = (ms: number): string => new Date(ms).toISOString().slice(0, -1)

/** A credential whose check takes longer, e.g. because the database is unreachable, gets no details. A guess. */
const credentialTimeoutMs = 1_000

/** Whether the request has a superadmin's credential. Health needs none, so a bad one only leaves the details out. */
const isOperator = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { authorization } = request.headers
  if (authorization === undefined || !/^bearer \S/i.test(authorization)) return false
  const credential = authorization.slice("bearer ".length).trim()
  return yield* identify(credential, true).pipe(
    Effect.map(({ scope }) => scope === "superadmin"),
    Effect.timeoutOption(credentialTimeoutMs),
    Effect.map(Option.getOrElse(() => false)),
    Effect.catchCause(() => Effect.succeed(false)),
  )
})

export const health = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const views = (yield* ModelRegistry).all()
  const draining = (yield* Drain).isClosed()
  const store = !(yield* StorePresence).isAway()
  const lost = lostUnder((yield* NodeTree).root)
  const status = healthOf({
    models: views.map((view) => view.status),
    draining,
    storeIsThere: store,
    hostIsLost: (yield* Device).isLost(),
    hasLost: lost.length > 0,
  })
  const details = (yield* isOperator(request))
    ? {
        failures: failuresOf(views),
        draining,
        store,
        gave_up: Object.fromEntries(lost.map(({ path, reason, outcome }) => [path, `${reason}; ${outcome}`])),
      }
    : undefined
  if (status === "unhealthy") {
    const notes = yield* CurrentRequest
    notes.failure = draining ? "the node is draining" : "every model has failed or cannot be loaded"
  }
  const { name, version } = yield* NodeIdentity
  const record: typeof HealthRecord.Type = {
    status,
    node: name,
    runtime: `edgewise/${version} node/${process.versions.node}`,
    timestamp: timestamp(yield* Clock.currentTimeMillis),
    features: {
      dynamic_loading: true,
      huggingface_support: yield* (yield* ModelPulls).canPull,
      webrtc_calls: (yield* CallPeers).pid() !== undefined,
    },
    backend: {
      healthy: status !== "unhealthy",
      info: {
        name: "edgewise",
        version,
        extensions: [...new Set(views.map(({ entry }) => entry.adapter))],
      },
    },
    ...(details === undefined ? {} : { details }),
  }
  return record
})

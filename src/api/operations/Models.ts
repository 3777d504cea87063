// GET /v1/models, /v1/models/{id} and /v1/models/status: records and handlers.
import { basename } from "node:path"
import { Context, Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { ModelSnapshot } from "#actors/model/ModelSnapshot.ts"
import type { ConversationEntry } from "#domain/conversation/ConversationEntry.ts"
import { ModelKind, seesPictures } from "#domain/models/ModelEntry.ts"
import { ThreadChoice, ThreadWork } from "#domain/threads/ThreadChoice.ts"
import { ModelNotLoaded } from "#domain/wire/Errors.ts"
import { idOfModelPath, pathOf } from "#http/NotFound.ts"
import { Caller } from "#services/Caller.ts"
import { Conversations } from "#services/Conversations.ts"

export const ModelListEntry = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  created: Schema.Int,
  owned_by: Schema.String,
  permission: Schema.Tuple([]),
  root: Schema.String,
  parent: Schema.Null,
  /** What it makes; with it a client knows which endpoint takes the model. A conversation joins three models. */
  kind: Schema.Literals([...ModelKind.literals, "conversation"]),
  /** Text models: what messages may hold. */
  input_modalities: Schema.optionalKey(Schema.Array(Schema.Literals(["text", "image"]))),
  /** How many parameters its GGUF weights have; absent for other formats and for files that are not pulled. */
  parameters: Schema.optionalKey(Schema.Int),
})

export const ModelList = Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(ModelListEntry) })

/** CPU threads of a loaded model. */
const ModelThreads = Schema.Struct({
  source: ThreadChoice.fields.source,
  /** The chosen threads by size of a step, and the measured times. */
  works: Schema.Array(ThreadWork),
  /** The most that it may use at this moment: fewer while other models work. */
  now: Schema.Int,
})

export const ModelStatusRecord = Schema.Struct({
  loaded: Schema.Array(Schema.String),
  loading_status: Schema.Record(Schema.String, Schema.Literals(["loaded", "loading", "unloaded", "failed"])),
  /** The catalog's file: its path for superadmins, its name for others. */
  repository: Schema.String,
  /** Failed models and why; for superadmins only. */
  failures: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** CPU threads of loaded models; for superadmins only. */
  threads: Schema.optionalKey(Schema.Record(Schema.String, ModelThreads)),
})

/** Where this node's catalog lies, shown as `repository`; set by main. */
export const Repository = Context.Reference<string>("edgewise/api/Repository", {
  defaultValue: () => "models",
})

type ModelRecord = typeof ModelListEntry.Type

const recordOf = (
  { created, id, ownedBy }: Pick<ConversationEntry, "created" | "id" | "ownedBy">,
  kind: ModelRecord["kind"],
): ModelRecord => ({
  id,
  object: "model",
  created,
  owned_by: ownedBy,
  permission: [],
  root: id,
  parent: null,
  kind,
})

const modelRecord = ({
  entry,
  host,
  parameters,
}: Pick<ModelSnapshot, "entry" | "host" | "parameters">): ModelRecord => {
  const record = { ...recordOf(entry, entry.kind), ...(parameters === undefined ? {} : { parameters }) }
  if (entry.kind !== "text") return record
  return { ...record, input_modalities: seesPictures(entry, host?.facts) ? ["text", "image"] : ["text"] }
}

export const listModels = Effect.gen(function* () {
  const models = (yield* ModelRegistry).all().map(modelRecord)
  const data = [...models, ...(yield* Conversations).all.map((entry) => recordOf(entry, "conversation"))]
  const list: typeof ModelList.Type = { object: "list", data }
  return list
})

/** Failed models, and why. For operators, never for callers. */
export const failuresOf = (views: ReadonlyArray<ModelSnapshot>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    views.flatMap(({ entry, lastFailure, status }) =>
      status === "failed" ? [[entry.id, lastFailure === "" ? "no reason is known" : lastFailure]] : [],
    ),
  )
/** CPU threads of the loaded models. For operators. */
const threadsOf = (views: ReadonlyArray<ModelSnapshot>): Readonly<Record<string, typeof ModelThreads.Type>> =>
  Object.fromEntries(
    views.flatMap(({ entry, host, status }) =>
      status === "loaded" && host?.threads !== undefined
        ? [[entry.id, { ...host.threads, now: host.threadsNow() }]]
        : [],
    ),
  )

/** The model's entry of the list, whether it is loaded or not. */
export const oneModel = Effect.fn("Models.one")(function* (request: HttpServerRequest.HttpServerRequest) {
  const id = idOfModelPath(pathOf(request.url)) ?? ""
  const models = yield* ModelRegistry
  const model = models.find(id)
  if (model === undefined) {
    const conversations = (yield* Conversations).all
    const conversation = conversations.find((entry) => entry.id === id)
    if (conversation !== undefined) return recordOf(conversation, "conversation")
    const deployed = [...models.all().map(({ entry }) => entry.id), ...conversations.map((entry) => entry.id)]
    return yield* new ModelNotLoaded({ model: id, deployed })
  }
  return modelRecord(model)
})

export const modelStatus = Effect.gen(function* () {
  const views = (yield* ModelRegistry).all()
  const isOperator = (yield* Caller).scope === "superadmin"
  const repository = yield* Repository
  const record: typeof ModelStatusRecord.Type = {
    loaded: views.filter(({ status }) => status === "loaded").map(({ entry }) => entry.id),
    loading_status: Object.fromEntries(views.map(({ entry, status }) => [entry.id, status])),
    repository: isOperator ? repository : basename(repository),
    ...(isOperator ? { failures: failuresOf(views), threads: threadsOf(views) } : {}),
  }
  return record
})

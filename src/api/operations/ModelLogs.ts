// GET /v1/models/logs: the last lines of one model's engine, for operators. The model is a query parameter, because ids may
// hold a slash.
import { Effect, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { InvalidRequest, ModelNotLoaded } from "#domain/wire/Errors.ts"
import { operator } from "./Operations.ts"

export const ModelLogsRecord = Schema.Struct({
  model: Schema.String,
  status: Schema.String,
  /** Oldest first, at most 200. */
  lines: Schema.Array(
    Schema.Struct({
      /** Counts up while the node runs; `after` takes it. */
      seq: Schema.Int,
      /** ISO 8601, UTC. */
      at: Schema.String,
      /** What the engine printed, or `node`: an event of the node about it. */
      stream: Schema.Literals(["stdout", "stderr", "node"]),
      level: Schema.Literals(["debug", "info", "warn", "error"]),
      text: Schema.String,
    }),
  ),
})

const afterOf = (text: string | null): Effect.Effect<number, InvalidRequest> => {
  if (text === null) return Effect.succeed(0)
  return /^\d{1,15}$/.test(text)
    ? Effect.succeed(Number(text))
    : Effect.fail(new InvalidRequest({ field: "after", problem: "must be a whole number, 0 or more" }))
}

export const modelLogs = Effect.fn("Operations.logs")(function* (
  request: HttpServerRequest.HttpServerRequest,
) {
  yield* operator
  const query = new URL(request.url, "http://edge").searchParams
  const model = query.get("model")
  if (model === null || model === "")
    return yield* new InvalidRequest({ field: "model", problem: "is required" })
  const after = yield* afterOf(query.get("after"))
  const view = (yield* ModelRegistry).find(model)
  if (view === undefined) return yield* new ModelNotLoaded({ model })
  return HttpServerResponse.jsonUnsafe({
    model,
    status: view.status,
    lines: view.output.lines(after).map(({ atMs, level, seq, stream, text }) => ({
      seq,
      at: new Date(atMs).toISOString(),
      stream,
      level,
      text,
    })),
  })
})

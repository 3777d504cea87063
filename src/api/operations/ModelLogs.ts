// GET /v1/models/logs: the last lines of one model's engine, for operators. The model is a query parameter, because ids
// may hold a slash.
import { Effect, Schema } from "effect"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { InvalidRequest, ModelNotLoaded } from "#domain/wire/Errors.ts"
import { operator } from "./Operations.ts"

export const ModelLogsRecord = Schema.Struct({
  model: Schema.String,
  status: Schema.String,
  /** Oldest first, at most 200. */
  lines: Schema.Array(
    Schema.Struct({
      /** Counts up while the node runs; the parameter `after` takes it. */
      seq: Schema.Int,
      /** ISO 8601, UTC. */
      at: Schema.String,
      /** `node` marks an event of the node about the engine; the others are lines that the engine printed. */
      stream: Schema.Literals(["stdout", "stderr", "node"]),
      level: Schema.Literals(["debug", "info", "warn", "error"]),
      text: Schema.String,
    }),
  ),
})

const afterOf = (text: string | undefined): Effect.Effect<number, InvalidRequest> => {
  if (text === undefined) return Effect.succeed(0)
  return /^\d{1,15}$/.test(text)
    ? Effect.succeed(Number(text))
    : Effect.fail(new InvalidRequest({ field: "after", problem: "must be a whole number, 0 or more" }))
}

export const modelLogs = Effect.fn("Operations.logs")(function* (query: {
  readonly model?: string
  readonly after?: string
}) {
  yield* operator
  const { model = "" } = query
  if (model === "") return yield* new InvalidRequest({ field: "model", problem: "is required" })
  const after = yield* afterOf(query.after)
  const view = (yield* ModelRegistry).find(model)
  if (view === undefined) return yield* new ModelNotLoaded({ model })
  const record: typeof ModelLogsRecord.Type = {
    model,
    status: view.status,
    lines: view.output.lines(after).map(({ atMs, level, seq, stream, text }) => ({
      seq,
      at: new Date(atMs).toISOString(),
      stream,
      level,
      text,
    })),
  }
  return record
})

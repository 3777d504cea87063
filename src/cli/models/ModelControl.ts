// `edgewise models load`, `unload` and `status`, and the load states that `models list` shows beside the catalog. All of it
// uses the node's HTTP interface: loading and unloading are for operators, the states for any key.

import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { table } from "#domain/process/Columns.ts"
import { describeThreads, describeTrial, ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { modelArgument } from "../shared/ModelOptions.ts"
import {
  type GivenNode,
  localFailure,
  type NodeAccess,
  operatorAccess,
  operatorFlags,
} from "../shared/NodeClient.ts"
import { getText, postForText, replyReader } from "../shared/NodeReplies.ts"
import { jsonFlag, printJson, switchFlag, wrongUsage } from "../shared/Output.ts"

/** A running node replies to this at once; `models list` should not wait longer. A guess. */
const statusTimeoutMs = 2_000

const States = Schema.Struct({
  loading_status: Schema.Record(Schema.String, Schema.String),
  /** Sent to superadmin keys only. */
  failures: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  threads: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Struct({ ...ThreadChoice.fields, now: Schema.Int })),
  ),
})
type NodeStates = typeof States.Type
const readStates = replyReader(States)

const askStates = (access: NodeAccess) =>
  Effect.gen(function* () {
    const text = yield* getText(access, "/v1/models/status")
    return { text, states: yield* readStates(text) }
  })

/** Load states and failures by model, of the node that the settings or flags name. Undefined if none answers. */
export const loadStates = (given: GivenNode): Effect.Effect<NodeStates | undefined> =>
  Effect.flatMap(operatorAccess(given), askStates).pipe(
    Effect.map(({ states }) => states),
    Effect.scoped,
    Effect.timeoutOption(statusTimeoutMs),
    Effect.map(Option.getOrUndefined),
    Effect.orElseSucceed(() => undefined),
  )

const readAnswer = replyReader(
  Schema.Struct({
    message: Schema.optionalKey(Schema.String),
    unloaded_models: Schema.optionalKey(Schema.Array(Schema.String)),
    errors: Schema.optionalKey(Schema.Array(Schema.String)),
  }),
)

const report = Effect.fnUntraced(function* (text: string, json: boolean) {
  const answer = yield* readAnswer(text)
  const { errors = [], message, unloaded_models: unloaded = [] } = answer
  if (json) yield* printJson(JSON.parse(text))
  else if (message !== undefined) yield* Console.log(message)
  else yield* Console.log(unloaded.length === 0 ? "nothing was loaded" : `unloaded ${unloaded.join(", ")}`)
  if (errors.length > 0) return yield* localFailure(errors.join("; "))
})

export const statusOfModels = Command.make(
  "status",
  { json: jsonFlag, ...operatorFlags },
  Effect.fn(function* ({ json, key, url }) {
    const { states, text } = yield* Effect.flatMap(operatorAccess({ url, key }), askStates)
    if (json) return yield* printJson(JSON.parse(text))
    const { failures = {}, loading_status: statuses, threads = {} } = states
    const rows = Object.entries(statuses).map(([id, status]) => {
      const choice = threads[id]
      const chosen = choice === undefined ? "" : describeThreads(choice)
      return [id, status, chosen, choice === undefined ? "" : String(choice.now), choice?.source ?? ""]
    })
    yield* Console.log(table(["id", "status", "threads", "now", "from"], rows))
    for (const [id, choice] of Object.entries(threads)) {
      const measured = describeTrial(choice)
      if (measured !== "") yield* Console.log(`${id}: ${measured}`)
    }
    for (const [id, reason] of Object.entries(failures)) yield* Console.log(`${id}: ${reason}`)
  }, Effect.scoped),
).pipe(
  Command.withDescription("Models of a running node: their states, their CPU threads and what was measured"),
)

export const loadModel = Command.make(
  "load",
  {
    id: modelArgument("ID"),
    forceReload: switchFlag("force-reload", "Replace a running engine; its requests fail"),
    json: jsonFlag,
    ...operatorFlags,
  },
  Effect.fn(function* ({ forceReload, id, json, key, url }) {
    const access = yield* operatorAccess({ url, key })
    const body = { model_name: id, force_reload: forceReload }
    yield* Effect.flatMap(postForText(access, "/v1/models/load", body), (text) => report(text, json))
  }, Effect.scoped),
).pipe(Command.withDescription("Load a model on a running node, and wait until it is ready"))

export const unloadModel = Command.make(
  "unload",
  {
    id: Argument.optional(modelArgument("ID")),
    all: switchFlag("all", "Every model that is loaded"),
    json: jsonFlag,
    ...operatorFlags,
  },
  Effect.fn(function* ({ all, id, json, key, url }) {
    if (Option.isSome(id) === all) {
      return yield* wrongUsage(["models", "unload"], "name one model, or give --all")
    }
    const access = yield* operatorAccess({ url, key })
    const asked = Option.isSome(id)
      ? postForText(access, "/v1/models/unload", { model_name: id.value })
      : postForText(access, "/v1/models/unload-all", undefined)
    yield* Effect.flatMap(asked, (text) => report(text, json))
  }, Effect.scoped),
).pipe(Command.withDescription("Unload a model of a running node, and wait until its memory is free"))

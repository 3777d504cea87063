// `edgewise models load`, `unload` and `status`, and the load states that `models list` shows beside the catalog. All of it
// uses the node's HTTP interface: loading and unloading need a superadmin key, the states any key.
import { Console, Effect, Option, Schema } from "effect"
import { Argument, CliError, Command, Flag } from "effect/cli"
import { describeThreads, describeTrial, ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import {
  expectStatus,
  type NodeAccess,
  NodeRefused,
  nodeAccess,
  nodeFlags,
  send,
  textOf,
} from "../shared/NodeClient.ts"
import { jsonFlag, table } from "../shared/Output.ts"

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
export type NodeStates = typeof States.Type
const local = (detail: string) => new NodeRefused({ status: 0, detail })
const notARecord = local("the node's answer is not a record")
const decodeStates = Schema.decodeUnknownEffect(Schema.fromJsonString(States))

const askStates = (access: NodeAccess) =>
  Effect.gen(function* () {
    const incoming = yield* send(access, { method: "GET", target: "/v1/models/status" })
    const text = yield* textOf(yield* expectStatus(incoming, 200))
    return { text, states: yield* Effect.mapError(decodeStates(text), () => notARecord) }
  })

/** Load states and failures by model, of the node that the settings or flags name. Undefined if none answers. */
export const loadStates = (given: {
  readonly url: Option.Option<string>
  readonly key: Option.Option<string>
}): Effect.Effect<NodeStates | undefined> =>
  Effect.flatMap(nodeAccess(given), askStates).pipe(
    Effect.map(({ states }) => states),
    Effect.scoped,
    Effect.timeoutOption(statusTimeoutMs),
    Effect.map(Option.getOrUndefined),
    Effect.orElseSucceed(() => undefined),
  )

export const post = Effect.fnUntraced(function* (
  access: NodeAccess,
  target: string,
  body: object | undefined,
) {
  const text = body === undefined ? "" : JSON.stringify(body)
  const incoming = yield* send(access, {
    method: "POST",
    target,
    headers: { "content-type": "application/json" },
    body: { pieces: text === "" ? [] : [text], sizeBytes: Buffer.byteLength(text) },
  })
  return yield* textOf(yield* expectStatus(incoming, 200))
})

const Answer = Schema.fromJsonString(
  Schema.Struct({
    message: Schema.optionalKey(Schema.String),
    unloaded_models: Schema.optionalKey(Schema.Array(Schema.String)),
    errors: Schema.optionalKey(Schema.Array(Schema.String)),
  }),
)
const decodeAnswer = Schema.decodeUnknownEffect(Answer)

const report = Effect.fnUntraced(function* (text: string, json: boolean) {
  const answer = yield* Effect.mapError(decodeAnswer(text), () => notARecord)
  const { errors = [], message, unloaded_models: unloaded = [] } = answer
  if (json) yield* Console.log(JSON.stringify(JSON.parse(text), null, 2))
  else if (message !== undefined) yield* Console.log(message)
  else yield* Console.log(unloaded.length === 0 ? "nothing was loaded" : `unloaded ${unloaded.join(", ")}`)
  if (errors.length > 0) return yield* local(errors.join("; "))
})

export const statusOfModels = Command.make(
  "status",
  { json: jsonFlag, ...nodeFlags },
  Effect.fn(function* ({ json, key, url }) {
    const { states, text } = yield* Effect.flatMap(nodeAccess({ url, key }), askStates)
    if (json) return yield* Console.log(JSON.stringify(JSON.parse(text), null, 2))
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
    id: Argument.String("ID").pipe(Argument.withDescription("Model of the catalog")),
    forceReload: Flag.Boolean("force-reload").pipe(
      Flag.withDescription("Replace a running engine; its requests fail"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
    ...nodeFlags,
  },
  Effect.fn(function* ({ forceReload, id, json, key, url }) {
    const access = yield* nodeAccess({ url, key })
    const body = { model_name: id, force_reload: forceReload }
    yield* Effect.flatMap(post(access, "/v1/models/load", body), (text) => report(text, json))
  }, Effect.scoped),
).pipe(Command.withDescription("Load a model on a running node, and wait until it is ready"))

export const unloadModel = Command.make(
  "unload",
  {
    id: Argument.String("ID").pipe(Argument.withDescription("Model of the catalog"), Argument.optional),
    all: Flag.Boolean("all").pipe(
      Flag.withDescription("Every model that is loaded"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
    ...nodeFlags,
  },
  Effect.fn(function* ({ all, id, json, key, url }) {
    if (Option.isSome(id) === all) {
      const error = new CliError.ValidationError({ message: "name one model, or give --all" })
      return yield* new CliError.ShowHelp({ commandPath: ["edgewise", "models", "unload"], errors: [error] })
    }
    const access = yield* nodeAccess({ url, key })
    const asked = Option.isSome(id)
      ? post(access, "/v1/models/unload", { model_name: id.value })
      : post(access, "/v1/models/unload-all", undefined)
    yield* Effect.flatMap(asked, (text) => report(text, json))
  }, Effect.scoped),
).pipe(Command.withDescription("Unload a model of a running node, and wait until its memory is free"))

// `edgewise models load` and `unload` on a running node, and the load states that `models list` shows beside the catalog.
// All of it is the node's own HTTP interface: these need a key, and the first two one with the superadmin scope.
import { Console, Effect, Option, Schema } from "effect"
import { Argument, CliError, Command, Flag } from "effect/cli"
import {
  expectStatus,
  type NodeAccess,
  NodeRefused,
  nodeAccess,
  nodeFlags,
  send,
  textOf,
} from "./NodeClient.ts"
import { jsonFlag } from "./Usage.ts"

/** A node that is there answers this at once; a list is not worth more waiting. A guess. */
const statusTimeoutMs = 2_000

const States = Schema.Struct({
  loading_status: Schema.Record(Schema.String, Schema.String),
  /** For superadmin keys only. */
  failures: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
})
export type NodeStates = typeof States.Type
const decodeStates = Schema.decodeUnknownEffect(Schema.fromJsonString(States))

/** Load states and failures by model, from the node that the settings or flags name; undefined where none answers. */
export const loadStates = (given: {
  readonly url: Option.Option<string>
  readonly key: Option.Option<string>
}): Effect.Effect<NodeStates | undefined> =>
  Effect.gen(function* () {
    const access = yield* nodeAccess(given)
    const incoming = yield* send(access, { method: "GET", target: "/v1/models/status" })
    const text = yield* textOf(yield* expectStatus(incoming, 200))
    return yield* decodeStates(text)
  }).pipe(
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

const local = (detail: string) => new NodeRefused({ status: 0, detail })

const report = Effect.fnUntraced(function* (text: string, json: boolean) {
  const answer = yield* Effect.mapError(decodeAnswer(text), () => local("the node's answer is not a record"))
  const { errors = [], message, unloaded_models: unloaded = [] } = answer
  if (json) yield* Console.log(JSON.stringify(JSON.parse(text), null, 2))
  else if (message !== undefined) yield* Console.log(message)
  else yield* Console.log(unloaded.length === 0 ? "nothing was loaded" : `unloaded ${unloaded.join(", ")}`)
  if (errors.length > 0) return yield* local(errors.join("; "))
})

export const loadModel = Command.make(
  "load",
  {
    id: Argument.String("ID").pipe(Argument.withDescription("Model of the catalog")),
    forceReload: Flag.Boolean("force-reload").pipe(
      Flag.withDescription("Replace the engine that is there; its requests fail"),
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
).pipe(Command.withDescription("Load a model on a running node, and wait until it answers"))

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
).pipe(Command.withDescription("Unload a model of a running node, and wait until its memory is back"))

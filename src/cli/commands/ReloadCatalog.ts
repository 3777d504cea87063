// `edgewise reload`: has a running node read its catalog again, and prints what changed.
import { Console, Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { ReloadRecord } from "#api/operations/CatalogReload.ts"
import { NodeRefused, nodeAccess, nodeFlags } from "../shared/NodeClient.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"
import { post } from "./ModelControl.ts"

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(ReloadRecord))

const lineOf = ({ added, changed, removed, unchanged }: ReloadRecord): string =>
  [
    ...Object.entries({ added, removed, changed }).flatMap(([what, ids]) =>
      ids.length === 0 ? [] : [`${what} ${ids.join(", ")}`],
    ),
    `${unchanged} unchanged`,
  ].join("; ")

export const reload = Command.make(
  "reload",
  { json: jsonFlag, ...nodeFlags },
  Effect.fn(function* ({ json, key, url }) {
    const text = yield* post(yield* nodeAccess({ url, key }), "/v1/models/reload", undefined)
    const record = yield* Effect.mapError(
      decode(text),
      () => new NodeRefused({ status: 0, detail: "the node's answer is not a record" }),
    )
    if (json) return yield* printJson(record)
    yield* Console.log(lineOf(record))
    for (const { model, reason } of record.failed) yield* Console.log(`${model} cannot be loaded: ${reason}`)
  }, Effect.scoped),
).pipe(
  Command.withDescription("Have a running node read its catalog again; requests under way are not disturbed"),
)

// `edgewise reload`: has a running node read its catalog again, and prints what changed.
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { ReloadRecord } from "#api/operations/CatalogReload.ts"
import { operatorAccess, operatorFlags } from "../shared/NodeClient.ts"
import { postForText, replyReader } from "../shared/NodeReplies.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"

const readRecord = replyReader(ReloadRecord)

const lineOf = ({ added, changed, removed, unchanged }: ReloadRecord): string =>
  [
    ...Object.entries({ added, removed, changed }).flatMap(([what, ids]) =>
      ids.length === 0 ? [] : [`${what} ${ids.join(", ")}`],
    ),
    `${unchanged} unchanged`,
  ].join("; ")

export const reload = Command.make(
  "reload",
  { json: jsonFlag, ...operatorFlags },
  Effect.fn(function* ({ json, key, url }) {
    const text = yield* postForText(yield* operatorAccess({ url, key }), "/v1/models/reload", undefined)
    const record = yield* readRecord(text)
    if (json) return yield* printJson(record)
    yield* Console.log(lineOf(record))
    for (const { model, reason } of record.failed) yield* Console.log(`${model} cannot be loaded: ${reason}`)
  }, Effect.scoped),
).pipe(
  Command.withDescription("Have a running node read its catalog again; requests under way are not disturbed"),
)

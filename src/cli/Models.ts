// `edgewise models list`: what the catalog deploys in this region, where the weights are and how large.
// The load state comes from a running node's /v1/models/status, which needs a key; this command needs none.
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { deployments } from "#store/CatalogFile.ts"
import { load } from "../Config.ts"
import { jsonFlag, printJson, table } from "./Usage.ts"

const list = Command.make(
  "list",
  { json: jsonFlag },
  Effect.fn(function* ({ json }) {
    const config = yield* load({})
    const rows = (yield* deployments(config.catalog, config.region)).map(({ entry, sizeBytes }) => ({
      id: entry.id,
      kind: entry.kind,
      adapter: entry.adapter,
      size_bytes: sizeBytes,
      owned_by: entry.ownedBy,
    }))
    if (json) return yield* printJson({ region: config.region, models: rows })
    const heading = ["id", "kind", "adapter", "size_bytes", "owned_by"]
    yield* Console.log(
      table(
        heading,
        rows.map((row) => Object.values(row).map(String)),
      ),
    )
  }),
).pipe(Command.withDescription("List the models that this region deploys"))

export const models = Command.make("models").pipe(
  Command.withDescription("Models of the catalog"),
  Command.withSubcommands([list]),
)

// `edgewise models list`: the models that the catalog deploys in this region, with the place and size of their weights.
// If a node runs and a key is available, also the load states there.

import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { load } from "#config/Config.ts"
import { partKinds } from "#domain/conversation/ConversationEntry.ts"
import { isDeployedIn } from "#domain/models/ModelEntry.ts"
import { table } from "#domain/process/Columns.ts"
import { deployments } from "#weights/ModelFiles.ts"
import { originOf, readEntries } from "#weights/NodeCatalog.ts"
import { operatorFlags } from "../shared/NodeClient.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"
import { catalogFlags, textsOf } from "../shared/SettingFlags.ts"
import { addModel } from "./AddModel.ts"
import { checkModels } from "./CheckModels.ts"
import { loadModel, loadStates, statusOfModels, unloadModel } from "./ModelControl.ts"
import { pull } from "./Pull.ts"
import { removeModel } from "./RemoveModel.ts"
import { showPresets } from "./ShowPresets.ts"

const list = Command.make(
  "list",
  { json: jsonFlag, ...catalogFlags, ...operatorFlags },
  Effect.fn(function* ({ catalog, dataDir, json, key, url }) {
    const config = yield* load(textsOf({ catalog, dataDir }))
    const { conversations, models } = yield* readEntries(config)
    const from = new Map(models.map(({ entry, file }) => [entry.id, originOf(file)]))
    const states = yield* loadStates({ url, key, dataDir })
    const modelRows = (yield* deployments(config)).map(({ entry, missing = [], problem, sizeBytes }) => ({
      id: entry.id,
      kind: entry.kind,
      adapter: entry.adapter,
      size_bytes: sizeBytes,
      owned_by: entry.ownedBy,
      from: from.get(entry.id) ?? "",
      weights: problem !== undefined ? "unusable" : missing.length === 0 ? "here" : "not pulled",
      status: states?.loading_status[entry.id] ?? (states === undefined ? "no node" : "not deployed"),
      /** Why it failed on the node, else what is wrong with its files here. */
      reason: states?.failures?.[entry.id] ?? problem ?? null,
    }))
    const joined = conversations
      .filter(({ entry }) => isDeployedIn(entry, config.region))
      .map(({ entry: { conversation, id, kind, ownedBy }, file }) => ({
        id,
        kind,
        adapter: null,
        size_bytes: 0,
        owned_by: ownedBy,
        from: originOf(file),
        weights: null,
        status: `joins ${partKinds.map((part) => conversation[part]).join(", ")}`,
        reason: null,
      }))
    const rows = [...modelRows, ...joined]
    if (json) return yield* printJson({ region: config.region, models: rows })
    const heading = ["id", "kind", "adapter", "size_bytes", "owned_by", "from", "weights", "status"]
    yield* Console.log(
      table(
        heading,
        rows.map(({ reason: _, ...row }) => Object.values(row).map((value) => String(value ?? ""))),
      ),
    )
    for (const { id, reason } of rows) if (reason !== null) yield* Console.log(`${id}: ${reason}`)
  }),
).pipe(Command.withDescription("List the models that this region deploys"))

export const models = Command.make("models").pipe(
  Command.withDescription("Models of the catalog"),
  Command.withSubcommands([
    list,
    showPresets,
    addModel,
    removeModel,
    checkModels,
    pull,
    statusOfModels,
    loadModel,
    unloadModel,
  ]),
)

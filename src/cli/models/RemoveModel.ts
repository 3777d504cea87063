// `edgewise models remove`: takes a model out of the catalog and off a running node, and deletes its weights if asked to.
import { rm } from "node:fs/promises"
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { load } from "#config/Config.ts"
import type { Config } from "#config/Settings.ts"
import type { ConversationEntry } from "#domain/conversation/ConversationEntry.ts"
import { type HubFile, hubScheme, membersOf, parseHubFile, sourceOf } from "#domain/models/HubFile.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { suggestion } from "#domain/models/NearestName.ts"
import { fileLock } from "#store/files/FileLock.ts"
import { indexOfEntry, withoutEntry } from "#weights/edit/CatalogText.ts"
import { CatalogUnchanged, editCatalog } from "#weights/edit/CatalogWrite.ts"
import {
  type CatalogConversation,
  type CatalogModel,
  readEntries,
  writtenCatalog,
} from "#weights/NodeCatalog.ts"
import { besidePath, keptPath, weightsDir } from "#weights/Weights.ts"
import { modelArgument } from "../shared/ModelOptions.ts"
import { operatorFlags } from "../shared/NodeClient.ts"
import { jsonFlag, printJson, switchFlag } from "../shared/Output.ts"
import { catalogFlags, textsOf } from "../shared/SettingFlags.ts"
import { noticeOfNode } from "./NodeNotice.ts"

/** The files of an entry that were or would be pulled. */
const hubFiles = (entry: ModelEntry | ConversationEntry): ReadonlyArray<HubFile> =>
  Object.values("files" in entry ? entry.files : {}).flatMap(({ files: members, source }) => {
    const file = source.startsWith(hubScheme) ? parseHubFile(source) : undefined
    if (file === undefined) return []
    return members === undefined ? [file] : membersOf(file, members).map((one) => one.file)
  })

/** Deletes a pulled file, its record and what had arrived of it, while no pull writes it. */
const deleteFile = (dir: string, file: HubFile) =>
  Effect.gen(function* () {
    const path = keptPath(dir, file)
    yield* Effect.ignore(fileLock(besidePath(dir, file, "lock"), () => {}))
    yield* Effect.tryPromise({
      try: async () => {
        for (const one of [
          path,
          ...(["sum", "part", "note"] as const).map((what) => besidePath(dir, file, what)),
        ])
          await rm(one, { force: true })
      },
      catch: (cause) =>
        new CatalogUnchanged({ path, problem: cause instanceof Error ? cause.message : String(cause) }),
    })
  }).pipe(Effect.scoped)

type Written = CatalogModel | CatalogConversation

const missing = (path: string, id: string, models: ReadonlyArray<Written>): CatalogUnchanged => {
  const known = models.filter(({ file }) => file === path).map(({ entry }) => entry.id)
  const isBuiltIn = models.some(({ entry, file }) => entry.id === id && file !== path)
  const problem = isBuiltIn
    ? `${id} is built in and cannot be removed; a model that is added with --as ${id} takes its place`
    : `has no model ${id}${known.length === 0 ? "; nothing was added to the built-in models" : suggestion(id, known)}`
  return new CatalogUnchanged({ path, problem })
}

const allEntries = (config: Config) =>
  Effect.map(
    readEntries(config),
    ({ conversations, models }): ReadonlyArray<Written> => [...models, ...conversations],
  )

export const removeModel = Command.make(
  "remove",
  {
    id: modelArgument("ID"),
    files: switchFlag("files", "Also delete its pulled weights that no other model uses"),
    json: jsonFlag,
    ...catalogFlags,
    ...operatorFlags,
  },
  Effect.fn(function* ({ catalog, dataDir, files, id, json, key, url }) {
    const config = yield* load(textsOf({ catalog, dataDir }))
    const path = writtenCatalog(config)
    const before = yield* allEntries(config)
    const model = before.find(({ entry, file }) => entry.id === id && file === path)
    if (model === undefined) return yield* missing(path, id, before)
    yield* editCatalog(config, {
      edit: (text) => {
        const index = indexOfEntry(text, id)
        const after = index === undefined ? undefined : withoutEntry(text, index)
        return after === undefined ? Effect.fail(missing(path, id, before)) : Effect.succeed(after)
      },
      keep: true,
    })
    const after = yield* allEntries(config)
    const present = after.some(({ entry }) => entry.id === id)
    const names = [id, ...(model.entry.aliases ?? [])]
    const back = after
      .filter(({ entry, file }) => file !== path && names.includes(entry.id))
      .map(({ entry }) => entry.id)
    const notice = yield* noticeOfNode(
      { url, key, dataDir },
      { id, present, watched: path !== config.catalog },
    )
    const used = new Set(after.flatMap(({ entry }) => hubFiles(entry).map(sourceOf)))
    const dir = weightsDir(config.dataDir)
    // A node that has not noticed may still load them.
    const doomed =
      files && notice.node !== "not served"
        ? hubFiles(model.entry).filter((file) => !used.has(sourceOf(file)))
        : []
    yield* Effect.forEach(doomed, (file) => deleteFile(dir, file), { discard: true })
    const deleted = doomed.map(sourceOf)
    if (json)
      return yield* printJson({ id, catalog: path, deleted, back, node: notice.node, note: notice.line })
    yield* Console.log(`${id} is removed from ${path}`)
    for (const one of deleted) yield* Console.log(`deleted ${one}`)
    for (const one of back) yield* Console.log(`the built-in ${one} is back`)
    yield* Console.log(notice.line)
  }),
).pipe(Command.withDescription("Take a model out of the catalog and off a running node"))

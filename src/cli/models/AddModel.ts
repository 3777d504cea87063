// `edgewise models add`: finds out what a model's files are, pulls them, writes the catalog entry with comments, and has a
// running node serve it. A step that fails leaves the catalog as it was; received bytes are kept for the next try.
import { Console, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { load } from "#config/Config.ts"
import { indexOfEntry, withEntry } from "#weights/edit/CatalogText.ts"
import { CatalogUnchanged, editCatalog } from "#weights/edit/CatalogWrite.ts"
import { type Comments, entryLines } from "#weights/edit/EntryText.ts"
import { bytesOf } from "#weights/found/FoundModel.ts"
import { restrictsUse } from "#weights/found/Licences.ts"
import { NotUsable } from "#weights/found/Repository.ts"
import { locate } from "#weights/ModelFiles.ts"
import { readModels, writtenCatalog } from "#weights/NodeCatalog.ts"
import { weightsDir } from "#weights/Weights.ts"
import { operatorFlags } from "../shared/NodeClient.ts"
import { jsonFlag, printJson, switchFlag, textFlag } from "../shared/Output.ts"
import { catalogFlags, textsOf } from "../shared/SettingFlags.ts"
import { withDevice } from "./MachineMemory.ts"
import { noticeOfNode } from "./NodeNotice.ts"
import {
  decodedEntry,
  fits,
  licenceOf,
  planned,
  requireAccepted,
  type Written,
  withSums,
} from "./PlannedModel.ts"
import { lineOf, megabytes, pullEntry, pullSettingsOf, recordOf } from "./PullHere.ts"

const sourcesOf = (files: Readonly<Record<string, { readonly source: string }>>): string =>
  // Without the commit: the same file of a branch that has moved on.
  JSON.stringify(Object.entries(files).map(([role, { source }]) => [role, source.replace(/@[^/]*/, "")]))

const insert =
  (path: string, entry: Written, comments: Comments) =>
  (text: string): Effect.Effect<string, CatalogUnchanged> => {
    if (indexOfEntry(text, entry.id) !== undefined) {
      const problem = `already has a model ${entry.id}; remove it first (edgewise models remove ${entry.id}), or give --id another name`
      return Effect.fail(new CatalogUnchanged({ path, problem }))
    }
    const after = withEntry(text, entryLines(entry, comments))
    return after === undefined
      ? Effect.fail(new CatalogUnchanged({ path, problem: "has no list of models" }))
      : Effect.succeed(after)
  }

const licenceLine = (licence: string | undefined): string =>
  licence === undefined
    ? "licence: its publisher names none"
    : `licence: ${licence}${restrictsUse(licence) ? ", which restricts what the model may be used for" : ""}`

export const addModel = Command.make(
  "add",
  {
    source: Argument.String("SOURCE").pipe(
      Argument.withDescription(
        "A preset's name, hf:owner/repo[@revision][/file], a .gguf file, or the folder of an ONNX export",
      ),
    ),
    id: textFlag("id", "ID", "The model's id; default: the preset's or the file's name"),
    as: textFlag(
      "as",
      "ID",
      "A further name that it answers to; a built-in model of this id steps aside; default: none",
    ),
    file: textFlag(
      "file",
      "FILE",
      "File or precision of a repository with several, e.g. Q4_K_M, or int8 of ONNX; default: what fits in memory",
    ),
    dryRun: switchFlag("dry-run", "Print the entry; pull and write nothing"),
    noPull: switchFlag("no-pull", "Write the entry without its files; `models pull` gets them"),
    accept: switchFlag(
      "accept",
      "Accept the model's licence, where it restricts what the model may be used for",
    ),
    json: jsonFlag,
    ...catalogFlags,
    ...operatorFlags,
  },
  Effect.fn(function* ({ accept, as, catalog, dataDir, dryRun, file, id, json, key, noPull, source, url }) {
    const config = yield* load(textsOf({ catalog, dataDir }))
    const path = writtenCatalog(config)
    const aliases = Option.isSome(as) ? [as.value] : []
    const plan = yield* planned(config, {
      id: Option.getOrUndefined(id),
      aliases,
      file: Option.getOrUndefined(file),
      source,
    })
    const { comments, entry, notes } = plan
    const licence = licenceOf(plan.source)
    const isRestricted = restrictsUse(licence)
    yield* requireAccepted(plan.source, accept || dryRun)
    const sizeBytes = bytesOf(entry.files)
    const decoded = yield* decodedEntry(entry)
    yield* withDevice(config, fits(decoded, sizeBytes))
    const before = (yield* readModels(config)).find((one) => one.entry.id === entry.id && one.file === path)
    const isThere = before !== undefined && sourcesOf(before.entry.files) === sourcesOf(entry.files)
    if (!isThere) yield* editCatalog(config, { edit: insert(path, entry, comments), keep: false })
    if (dryRun) {
      if (json)
        return yield* printJson({
          id: entry.id,
          catalog: path,
          size_bytes: sizeBytes,
          licence: licence ?? null,
          restricts_use: isRestricted,
          entry,
          notes,
        })
      for (const line of entryLines(entry, comments)) yield* Console.log(line)
      for (const note of notes) yield* Console.log(`note: ${note}`)
      yield* Console.log(licenceLine(licence))
      return yield* Console.log(`${megabytes(sizeBytes)}; nothing was pulled, ${path} was not changed`)
    }
    const wanted = isThere ? before.entry : decoded
    const isRemote = JSON.stringify(entry.files).includes('"hf:')
    const pulled =
      noPull || !isRemote ? [] : yield* pullEntry(path, wanted, yield* pullSettingsOf(config.dataDir))
    if (!noPull) {
      const { problem } = yield* locate(path, wanted, weightsDir(config.dataDir))
      if (problem !== undefined) return yield* new NotUsable({ source: entry.id, problem })
    }
    const final = { ...entry, files: withSums(entry.files, pulled) }
    if (!isThere) yield* editCatalog(config, { edit: insert(path, final, comments), keep: true })
    const notice = yield* noticeOfNode(
      { url, key, dataDir },
      { id: entry.id, present: true, watched: path !== config.catalog },
    )
    // Sums of a new entry are those of the hub's listing.
    const files = pulled
      .map(recordOf)
      .map((record) =>
        isThere || record.checked_by === null ? record : { ...record, checked_by: "hub" as const },
      )
    if (json) {
      const { line, node } = notice
      return yield* printJson({
        id: entry.id,
        catalog: path,
        size_bytes: sizeBytes,
        licence: licence ?? null,
        restricts_use: isRestricted,
        entry: final,
        files,
        notes,
        node,
        note: line,
      })
    }
    for (const record of files) yield* Console.log(lineOf(record))
    yield* Console.log(`${entry.id}: ${plan.found.summary}`)
    for (const note of notes) yield* Console.log(`note: ${note}`)
    yield* Console.log(licenceLine(licence))
    yield* Console.log(isThere ? `${path} has it already` : `written to ${path}`)
    if (noPull) yield* Console.log(`it is not pulled: edgewise models pull ${entry.id}`)
    yield* Console.log(notice.line)
  }),
).pipe(
  Command.withDescription(
    "Add a model: pull its files, write its catalog entry, have a running node serve it",
  ),
)

// Finds and checks the weight files of catalog entries, and decides which entries a region deploys. A missing or
// damaged file is recorded in the deployment, so that the node starts and serves its other models.
import { createHash } from "node:crypto"
import { dirname, isAbsolute, join } from "node:path"
import { Effect } from "effect"
import type { ConversationEntry } from "#domain/conversation/ConversationEntry.ts"
import type { Deployment, FileVersion } from "#domain/models/Deployment.ts"
import {
  type FolderMember,
  type HubFile,
  hubScheme,
  membersOf,
  parseHubFile,
} from "#domain/models/HubFile.ts"
import { isDeployedIn, type ModelEntry } from "#domain/models/ModelEntry.ts"
import { BadCatalog } from "./CatalogFile.ts"
import { frontEndLack } from "./FrontEnd.ts"
import { type CatalogSettings, readEntries, readModels } from "./NodeCatalog.ts"
import type { ExpectedFile } from "./PullFile.ts"
import { checkWeight } from "./WeightCheck.ts"
import { keptPath, pulled, weightsDir } from "./Weights.ts"

/**
 * The paths of an entry's files and what is wrong with them (`problem`). The SHA-256 of a local file is computed if the
 * catalog names one; that of a pulled file was checked when it arrived.
 * @param dir the folder of pulled files; files that are not there yet are listed in `missing`
 */
export const locate = (
  catalogPath: string,
  entry: ModelEntry,
  dir?: string,
): Effect.Effect<Deployment, BadCatalog> =>
  Effect.gen(function* () {
    const files: Record<string, string> = {}
    const versions: Record<string, FileVersion> = {}
    const missing: Array<string> = []
    const problems: Array<string> = []
    const parts: Array<string> = []
    let sizeBytes = 0
    let parameters = 0
    const check = Effect.fnUntraced(function* (
      role: string,
      source: string,
      path: string,
      { sha256, sizeBytes: expectedBytes }: ExpectedFile = {},
    ) {
      const checked = yield* Effect.promise(() => checkWeight({ entry, role, path, sha256 }))
      files[role] = path
      parts.push(...checked.parts)
      if (role !== "mmproj") parameters += checked.parameters
      if (checked.version !== undefined) versions[role] = checked.version
      sizeBytes += checked.version?.sizeBytes ?? 0
      const has = checked.version?.sizeBytes
      const differs = expectedBytes !== undefined && has !== undefined && has !== expectedBytes
      const problem =
        checked.problem ?? (differs ? `has ${has} bytes, the catalog says ${expectedBytes}` : undefined)
      if (problem !== undefined) problems.push(`${role}: ${source} ${problem}`)
    })
    /** The record of a pulled file that has the expected sum. */
    const recordOf = (file: HubFile, sha256: string | undefined) =>
      Effect.promise(async () => {
        const record = dir === undefined ? undefined : await pulled(dir, file)
        return record === undefined || record.sha256 !== (sha256 ?? record.sha256) ? undefined : record
      })
    const checkMember = Effect.fnUntraced(function* (role: string, { file, sha256, source }: FolderMember) {
      const record = yield* recordOf(file, sha256)
      if (record === undefined) {
        missing.push(source)
        return
      }
      sizeBytes += record.sizeBytes
      const before = versions[role]
      // Of the folder: the sizes together, and a sum of the sums of its files.
      versions[role] = {
        sizeBytes: (before?.sizeBytes ?? 0) + record.sizeBytes,
        modifiedMs: Math.max(before?.modifiedMs ?? 0, record.modifiedMs),
        sha256: createHash("sha256")
          .update(`${before?.sha256 ?? ""}${record.sha256}`)
          .digest("hex"),
      }
    })
    for (const [role, { files: members, sha256, sizeBytes: expectedBytes, source }] of Object.entries(
      entry.files,
    )) {
      if (!source.startsWith(hubScheme)) {
        yield* check(role, source, isAbsolute(source) ? source : join(dirname(catalogPath), source), {
          sha256,
          sizeBytes: expectedBytes,
        })
        continue
      }
      const file = parseHubFile(source)
      if (file === undefined) {
        const problem = `${entry.id}: ${role}: ${source} is not hf:owner/repo@commit/file`
        return yield* new BadCatalog({ path: catalogPath, problem })
      }
      if (members !== undefined) {
        if (dir !== undefined) files[role] = keptPath(dir, file)
        yield* Effect.forEach(membersOf(file, members), (one) => checkMember(role, one))
        continue
      }
      const record = yield* recordOf(file, sha256)
      if (dir === undefined || record === undefined) missing.push(source)
      else {
        yield* check(role, source, keptPath(dir, file))
        versions[role] = record
      }
    }
    const lack = frontEndLack(entry)
    if (lack?.all === true) problems.push(lack.problem)
    const problem = problems.join("; ")
    return {
      entry,
      files,
      parts,
      versions,
      sizeBytes,
      ...(parameters > 0 && Number.isSafeInteger(parameters) && missing.length === 0 ? { parameters } : {}),
      missing,
      ...(problem === "" ? {} : { problem }),
    }
  })

/** The conversations of a node in its region. */
export const deployedConversations = (
  settings: CatalogSettings & { readonly region: string },
  regions?: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<ConversationEntry>, BadCatalog> =>
  Effect.map(readEntries(settings, regions), ({ conversations }) =>
    conversations.map(({ entry }) => entry).filter((entry) => isDeployedIn(entry, settings.region)),
  )

/**
 * The deployments of a node in its region. `regions` are the codes that entries may name; without it they are not
 * checked.
 */
export const deployments = (
  settings: CatalogSettings & { readonly region: string },
  regions?: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<Deployment>, BadCatalog> =>
  Effect.gen(function* () {
    const models = yield* readModels(settings, regions)
    return yield* Effect.forEach(
      models.filter(({ entry }) => isDeployedIn(entry, settings.region)),
      ({ entry }) => locate(settings.catalog, entry, weightsDir(settings.dataDir)),
    )
  })

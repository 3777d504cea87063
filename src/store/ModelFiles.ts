// Finds and checks the weight files that catalog entries name, and decides which entries a region deploys: what the
// registry starts. Called by serve and by the models commands.
import { stat } from "node:fs/promises"
import { dirname, isAbsolute, join } from "node:path"
import { Effect } from "effect"
import type { Deployment, FileVersion } from "#actors/ModelRegistry.ts"
import { hubScheme, parseHubFile } from "#domain/HubFile.ts"
import { isDeployedIn, type ModelEntry } from "#domain/Model.ts"
import { BadCatalog, readCatalog } from "./CatalogFile.ts"
import { sumOf } from "./FileSums.ts"
import { keptPath, pulled } from "./Weights.ts"

/**
 * What is wrong with an entry's files, or where they are. Sums are checked, so a half-copied file is never loaded; those
 * of a pulled file were checked when it came. `weightsDir` is where pulled files are; one that is not there yet is no
 * mistake of the catalog.
 */
export const locate = (
  catalogPath: string,
  entry: ModelEntry,
  weightsDir?: string,
): Effect.Effect<Deployment, BadCatalog> =>
  Effect.gen(function* () {
    const files: Record<string, string> = {}
    const versions: Record<string, FileVersion> = {}
    const missing: Array<string> = []
    let sizeBytes = 0
    for (const [role, { sha256, source }] of Object.entries(entry.files)) {
      const bad = (problem: string) =>
        new BadCatalog({ path: catalogPath, problem: `${entry.id}: ${role}: ${problem}` })
      if (source.startsWith(hubScheme)) {
        const file = parseHubFile(source)
        if (file === undefined) return yield* bad(`${source} is not hf:owner/repo@commit/file`)
        const record = yield* Effect.promise(async () =>
          weightsDir === undefined ? undefined : await pulled(weightsDir, file),
        )
        if (weightsDir === undefined || record === undefined || record.sha256 !== (sha256 ?? record.sha256)) {
          missing.push(source)
          continue
        }
        files[role] = keptPath(weightsDir, file)
        versions[role] = record
        sizeBytes += record.sizeBytes
        continue
      }
      const path = isAbsolute(source) ? source : join(dirname(catalogPath), source)
      const info = yield* Effect.tryPromise({
        try: () => stat(path),
        catch: () => bad(`${source} is not there`),
      })
      if (sha256 !== undefined) {
        const actual = yield* Effect.tryPromise({
          try: () => sumOf(path, info),
          catch: () => bad("cannot be read"),
        })
        if (actual !== sha256)
          return yield* bad(`${source} has SHA-256 ${actual}, the catalog says ${sha256}`)
      }
      files[role] = path
      versions[role] = { sizeBytes: info.size, modifiedMs: info.mtimeMs, sha256 }
      sizeBytes += info.size
    }
    return { entry, files, versions, sizeBytes, missing }
  })

/** The deployments of a region's node. */
export const deployments = (
  catalogPath: string,
  region: string,
  weightsDir?: string,
): Effect.Effect<ReadonlyArray<Deployment>, BadCatalog> =>
  Effect.gen(function* () {
    const { models } = yield* readCatalog(catalogPath)
    return yield* Effect.forEach(
      models.filter((entry) => isDeployedIn(entry, region)),
      (entry) => locate(catalogPath, entry, weightsDir),
    )
  })

// Reads the model catalog: one JSON file beside the weights it names. Decides which entries a region deploys, finds
// their files and checks them before anything is loaded. Called by serve and by the models commands.
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { dirname, isAbsolute, join } from "node:path"
import { Effect, Schema } from "effect"
import type { Deployment } from "#actors/ModelRegistry.ts"
import { hubScheme, parseHubFile } from "#domain/HubFile.ts"
import { Catalog, isDeployedIn, type ModelEntry } from "#domain/Model.ts"
import { placementProblem } from "#domain/Placement.ts"
import { adapterNames } from "#engines/adapters.ts"
import { keptPath, pulled } from "./Weights.ts"

export class BadCatalog extends Schema.TaggedError<BadCatalog>()("BadCatalog", {
  path: Schema.String,
  problem: Schema.String,
}) {
  override get message(): string {
    return `catalog ${this.path}: ${this.problem}`
  }
}

/** A catalog is written by hand; a megabyte is thousands of models. */
const maxCatalogBytes = 1_000_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Catalog))

export const readCatalog = (path: string): Effect.Effect<Catalog, BadCatalog> =>
  Effect.gen(function* () {
    const bad = (problem: string) => new BadCatalog({ path, problem })
    const { size } = yield* Effect.tryPromise({ try: () => stat(path), catch: () => bad("cannot be read") })
    if (size > maxCatalogBytes) return yield* bad(`is larger than ${maxCatalogBytes} bytes`)
    const text = yield* Effect.tryPromise({
      try: () => readFile(path, "utf8"),
      catch: () => bad("cannot be read"),
    })
    const catalog = yield* Effect.mapError(decode(text), (error) => bad(error.message))
    const ids = new Set<string>()
    for (const entry of catalog.models) {
      const { adapter, id } = entry
      if (ids.has(id)) return yield* bad(`${id} is there twice`)
      ids.add(id)
      if (!adapterNames.includes(adapter)) {
        return yield* bad(`${id}: unknown adapter ${adapter}; known are ${adapterNames.join(", ")}`)
      }
      const misplaced = placementProblem(entry)
      if (misplaced !== undefined) return yield* bad(`${id}: ${misplaced}`)
    }
    return catalog
  })

const sha256Of = async (path: string): Promise<string> => {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest("hex")
}

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
          try: () => sha256Of(path),
          catch: () => bad("cannot be read"),
        })
        if (actual !== sha256)
          return yield* bad(`${source} has SHA-256 ${actual}, the catalog says ${sha256}`)
      }
      files[role] = path
      sizeBytes += info.size
    }
    return { entry, files, sizeBytes, missing }
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

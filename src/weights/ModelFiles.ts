// Finds and checks the weight files of catalog entries, and decides which entries a region deploys. A missing or
// damaged file is recorded in the deployment, so that the node starts and serves its other models.
import { dirname, isAbsolute, join } from "node:path"
import { Effect } from "effect"
import type { Deployment, FileVersion } from "#actors/model/ModelRegistry.ts"
import { hubScheme, parseHubFile } from "#domain/models/HubFile.ts"
import { isDeployedIn, type ModelEntry } from "#domain/models/ModelEntry.ts"
import { BadCatalog, readCatalog } from "./CatalogFile.ts"
import { frontEndLack } from "./FrontEnd.ts"
import { checkWeight } from "./WeightCheck.ts"
import { keptPath, pulled } from "./Weights.ts"

/**
 * The paths of an entry's files and what is wrong with them (`problem`). The SHA-256 of a local file is computed if the
 * catalog names one; that of a pulled file was checked when it arrived.
 * @param weightsDir the folder of pulled files; files that are not there yet are listed in `missing`
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
    const problems: Array<string> = []
    let sizeBytes = 0
    const check = Effect.fnUntraced(function* (role: string, source: string, path: string, sha256?: string) {
      const checked = yield* Effect.promise(() => checkWeight({ entry, role, path, sha256 }))
      files[role] = path
      if (checked.version !== undefined) versions[role] = checked.version
      sizeBytes += checked.version?.sizeBytes ?? 0
      if (checked.problem !== undefined) problems.push(`${role}: ${source} ${checked.problem}`)
    })
    for (const [role, { sha256, source }] of Object.entries(entry.files)) {
      if (!source.startsWith(hubScheme)) {
        yield* check(role, source, isAbsolute(source) ? source : join(dirname(catalogPath), source), sha256)
        continue
      }
      const file = parseHubFile(source)
      if (file === undefined) {
        const problem = `${entry.id}: ${role}: ${source} is not hf:owner/repo@commit/file`
        return yield* new BadCatalog({ path: catalogPath, problem })
      }
      const record = yield* Effect.promise(async () =>
        weightsDir === undefined ? undefined : await pulled(weightsDir, file),
      )
      if (weightsDir === undefined || record === undefined || record.sha256 !== (sha256 ?? record.sha256))
        missing.push(source)
      else {
        yield* check(role, source, keptPath(weightsDir, file))
        versions[role] = record
      }
    }
    const lack = frontEndLack(entry)
    if (lack?.all === true) problems.push(lack.problem)
    const problem = problems.join("; ")
    return { entry, files, versions, sizeBytes, missing, ...(problem === "" ? {} : { problem }) }
  })

/**
 * The deployments of a node in this region. `regions` are the codes that entries may name; without it they are not
 * checked.
 */
export const deployments = (
  catalogPath: string,
  region: string,
  weightsDir?: string,
  regions?: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<Deployment>, BadCatalog> =>
  Effect.gen(function* () {
    const { models } = yield* readCatalog(catalogPath, regions)
    return yield* Effect.forEach(
      models.filter((entry) => isDeployedIn(entry, region)),
      (entry) => locate(catalogPath, entry, weightsDir),
    )
  })

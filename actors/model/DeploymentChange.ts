// Questions about deployments, pure: does one that replaces another need a new engine, or only new metadata? Can it be
// loaded at all? Asked by Model, and by Redeployment when the catalog is applied again.
import { isDeepStrictEqual } from "node:util"
import type { Deployment, FileVersion } from "#domain/models/Deployment.ts"

/**
 * `none`: nothing is touched. `metadata`: price, speech limits, voices, owner and the like; the engine goes on.
 * `engine`: the kind, the adapter, its options, the runtime settings or the weights differ.
 */
type DeploymentChange = "none" | "metadata" | "engine"

/** Sums decide where both sides have one: a file that was only touched is the same file. */
const sameVersion = (before: FileVersion | undefined, after: FileVersion | undefined): boolean => {
  if (before === undefined || after === undefined) return before === after
  if (before.sha256 !== undefined && after.sha256 !== undefined) return before.sha256 === after.sha256
  return before.sizeBytes === after.sizeBytes && before.modifiedMs === after.modifiedMs
}

const sameFiles = (before: Deployment, after: Deployment): boolean => {
  const roles = new Set([...Object.keys(before.files), ...Object.keys(after.files)])
  return [...roles].every(
    (role) =>
      before.files[role] === after.files[role] &&
      sameVersion(before.versions?.[role], after.versions?.[role]),
  )
}

/** The part of an entry that its engine is started with. */
const engineOf = ({ entry: { adapter, kind, options, runtime } }: Deployment) => ({
  adapter,
  kind,
  options,
  runtime,
})

const sourcesOf = ({ entry }: Deployment) =>
  Object.entries(entry.files).map(([role, { source }]) => [role, source])

/** Other contents of the files that the entry named before and names now, or files that were mended. */
const otherWeights = (before: Deployment, after: Deployment, isLoaded: boolean): boolean => {
  // A running engine is not given up for files that nothing can be loaded from.
  const isKept = isLoaded && lackOf(after) !== undefined
  if (isKept && isDeepStrictEqual(sourcesOf(before), sourcesOf(after))) return false
  const isMended = before.problem !== undefined && before.problem !== after.problem
  return isMended || !sameFiles(before, after)
}

/** `isLoaded`: whether the one before has an engine. */
export const changeOf = (before: Deployment, after: Deployment, isLoaded: boolean): DeploymentChange => {
  const isOther = !isDeepStrictEqual(engineOf(before), engineOf(after))
  if (isOther || otherWeights(before, after, isLoaded)) return "engine"
  return isDeepStrictEqual(before.entry, after.entry) ? "none" : "metadata"
}

/** Why a deployment cannot be loaded, as far as that is known without trying. */
export const lackOf = ({ entry, missing = [], problem }: Deployment): string | undefined =>
  problem ?? (missing.length > 0 ? `weights are not pulled: edgewise models pull ${entry.id}` : undefined)

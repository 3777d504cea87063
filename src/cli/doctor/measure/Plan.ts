// How the time of `edgewise doctor` is shared among the models, and which models need no measurement of their own. Pure.
import type { Deployment } from "#actors/model/ModelRegistry.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"

/** Entries with the same weights and settings: one of them is measured. */
export interface Group {
  readonly measured: Deployment
  /** Ids of the others. */
  readonly same: ReadonlyArray<string>
}

/** Everything of an entry that its engine's speed can depend on. */
const workOf = ({ adapter, files, kind, options, runtime }: ModelEntry): string =>
  JSON.stringify([kind, adapter, files, options, { ...runtime, load: "" }])

/** In the catalog's order; of a group the model that a node loads at its start, or the first. */
export const groupsOf = (deployed: ReadonlyArray<Deployment>): ReadonlyArray<Group> => {
  const groups = new Map<string, Array<Deployment>>()
  for (const deployment of deployed) {
    const work = workOf(deployment.entry)
    groups.set(work, [...(groups.get(work) ?? []), deployment])
  }
  return [...groups.values()].flatMap((members) => {
    const measured = members.find(({ entry }) => entry.runtime.load === "start") ?? members[0]
    if (measured === undefined) return []
    const same = members.filter((one) => one !== measured).map(({ entry }) => entry.id)
    return [{ measured, same }]
  })
}

/** The least that says anything about a model, milliseconds. A guess. */
export const leastMs = 1_500

/** Time for the next of `left` models, whether it is used or not: what one does not need is shared by those after it. */
export const shareMs = (remainingMs: number, left: number): number => remainingMs / Math.max(1, left)

/** Time that a load may take: all that is left but the least for every model after it. */
export const loadMs = (remainingMs: number, left: number): number =>
  Math.max(leastMs, remainingMs - leastMs * left)

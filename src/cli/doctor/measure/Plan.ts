// Divides the time of `edgewise doctor` among the models, and finds models that need no measurement of their own. Pure.
import type { Deployment } from "#domain/models/Deployment.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"

/** Entries with the same weights and settings, of which one is measured. */
interface Group {
  readonly measured: Deployment
  /** Ids of the others. */
  readonly same: ReadonlyArray<string>
}

/** Everything in an entry that its engine's speed can depend on. */
const workOf = ({ adapter, files, kind, options, runtime }: ModelEntry): string =>
  JSON.stringify([kind, adapter, files, options, { ...runtime, load: "" }])

/** In the catalog's order. Of a group, the model that a node loads at its start is measured, or the first. */
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

/** The shortest useful time for a model, milliseconds. A guess. */
export const leastMs = 1_500

/** Time for the next of `left` models. Time that one does not use is shared by the models after it. */
export const shareMs = (remainingMs: number, left: number): number => remainingMs / Math.max(1, left)

/** Longest time of a load: everything that is left except the minimum for each model after it. */
export const loadMs = (remainingMs: number, left: number): number =>
  Math.max(leastMs, remainingMs - leastMs * left)

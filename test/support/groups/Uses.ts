// Records what the tests of one file use, and compares it with the group in the file's name.
import { expect, inject } from "vitest"
import { type Group, groupOf, groups } from "./Groups.ts"

/** The group of the running file. */
const currentGroup = (): Group => inject("group") ?? groupOf(expect.getState().testPath ?? "")

const used = new Map<Group, string>()

const rank = (group: Group): number => groups.indexOf(group)

/** Records a use. Throws if the group of the running file may not use `need`; the error contains `what`. */
export const uses = (need: Group, what: string): void => {
  used.set(need, what)
  if (rank(need) > rank(currentGroup())) throw new Error(misplaced(need, what))
}

const misplaced = (need: Group, what: string): string =>
  `this test uses ${what}: its file's name must end in .${need}.test.ts (test/support/groups/Groups.ts)`

/**
 * The problem of the file's name, by the uses since the last call; undefined if it is right. Repeats an error that `uses` threw,
 * because product code may have caught it. `complete`: all tests of the file ran.
 */
export const verdict = (complete: boolean): string | undefined => {
  const seen = [...used].toSorted(([one], [other]) => rank(other) - rank(one))
  used.clear()
  const group = currentGroup()
  const [most, what = ""] = seen[0] ?? ["fast" as const]
  if (rank(most) > rank(group)) return misplaced(most, what)
  if (!complete || group === "long" || most === group) return undefined
  const end = most === "fast" ? ".test.ts" : `.${most}.test.ts`
  return `no test of this file needs the group ${group}: its name must end in ${end}`
}

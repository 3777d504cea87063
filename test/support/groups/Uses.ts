// What the tests of one file have used, against the group in the file's name. Called by Guard.ts and by the support
// modules that start servers and browsers.
import { inject } from "vitest"
import { type Group, groups } from "./Groups.ts"

const used = new Map<Group, string>()

const rank = (group: Group): number => groups.indexOf(group)

/** Throws where the running file's group may not use what `need` stands for; `what` is told in the error. */
export const uses = (need: Group, what: string): void => {
  used.set(need, what)
  if (rank(need) > rank(inject("group"))) throw new Error(misplaced(need, what))
}

const misplaced = (need: Group, what: string): string =>
  `this test uses ${what}: its file's name must end in .${need}.test.ts (test/support/groups/Groups.ts)`

/**
 * What is wrong with the file's name by what was used since the last call; undefined where it is right. Product code may
 * have caught what `uses` threw, so it is said again. `complete` where all tests of the file ran.
 */
export const verdict = (complete: boolean): string | undefined => {
  const seen = [...used].toSorted(([one], [other]) => rank(other) - rank(one))
  used.clear()
  const group = inject("group")
  const [most, what = ""] = seen[0] ?? ["fast" as const]
  if (rank(most) > rank(group)) return misplaced(most, what)
  if (!complete || group === "long" || most === group) return undefined
  const end = most === "fast" ? ".test.ts" : `.${most}.test.ts`
  return `no test of this file needs the group ${group}: its name must end in ${end}`
}

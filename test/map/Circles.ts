// Files that import each other in a circle, directly or through others: the strongly connected components of the imports,
// after Tarjan.
import type { Arrow } from "./ReadImports.ts"

/** Each circle as its files in the order of their names; a file that imports itself is one too. */
export const circlesOf = (arrows: ReadonlyArray<Arrow>): ReadonlyArray<ReadonlyArray<string>> => {
  const targets = new Map<string, Set<string>>()
  for (const { path, target } of arrows) {
    const of = targets.get(path) ?? new Set()
    targets.set(path, of.add(target))
  }
  const circles: Array<ReadonlyArray<string>> = []
  const numbers = new Map<string, number>()
  /** Reached, and not known to belong to a component. */
  const open: Array<string> = []
  /** The lowest number of an open file that the file leads to. */
  const visit = (path: string): number => {
    const number = numbers.size
    numbers.set(path, number)
    open.push(path)
    let lowest = number
    for (const target of targets.get(path) ?? []) {
      if (!numbers.has(target)) lowest = Math.min(lowest, visit(target))
      else if (open.includes(target)) lowest = Math.min(lowest, numbers.get(target)!)
    }
    if (lowest === number) {
      const component = open.splice(open.indexOf(path))
      if (component.length > 1 || targets.get(path)?.has(path) === true) circles.push(component.toSorted())
    }
    return lowest
  }
  for (const path of targets.keys()) if (!numbers.has(path)) visit(path)
  return circles.toSorted((a, b) => (a.join() < b.join() ? -1 : 1))
}

// A gate on quality: which counted figures of a run are worse than those that bench/results keeps. Times and sizes are left out, because
// they depend on the machine. Pure.
import type { Figure, Part } from "#harness/report/Figure.ts"
import type { Section } from "#harness/report/Result.ts"

/** How much worse a figure may be: processors of other kinds round differently, so that one word or answer can be another one. */
const allowed = (unit: string): number | undefined => {
  if (unit === "%") return 1
  return unit.startsWith("of ") ? 1 : undefined
}

const worse = (kept: Figure, now: Figure): boolean => {
  const most = allowed(kept.unit)
  if (most === undefined || kept.goal === undefined || kept.median === null) return false
  if (now.median === null) return true
  const less = kept.goal.is === "at most" ? now.median - kept.median : kept.median - now.median
  return less > most
}

const figuresOf = (parts: ReadonlyArray<Part>): ReadonlyMap<string, Figure> =>
  new Map(
    parts.flatMap(({ figures, title }) => figures.map((one) => [`${title}: ${one.name}`, one] as const)),
  )

/**
 * A sentence for each figure with a goal that is worse than the kept one, or no longer there.
 * @param kept the same section of bench/results; undefined if it has none
 */
export const worseThan = (kept: Section | undefined, now: Section): ReadonlyArray<string> => {
  if (kept === undefined) return [`${now.name}: bench/results has no file of it to compare with`]
  const found = figuresOf(now.parts)
  return [...figuresOf(kept.parts)].flatMap(([name, before]) => {
    const after = found.get(name)
    const change = `${before.median} ${before.unit} before`
    if (after === undefined) {
      return before.goal === undefined ? [] : [`${now.name}: ${name}: not measured, ${change}`]
    }
    return worse(before, after)
      ? [`${now.name}: ${name}: ${after.median ?? "unreadable"} ${after.unit}, ${change}`]
      : []
  })
}

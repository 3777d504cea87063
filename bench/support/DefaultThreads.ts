// A node whose catalog names no number of threads, beside nodes whose catalog names one: which counts are tried, and the figures.
import { median } from "#harness/figures/Statistics.ts"
import { atLeast, type Figure, figureOf, ofEach, ratioTo, speedOver } from "#harness/report/Figure.ts"

/** All counts up to four; beyond, powers of two and the maximum, because each is a node with its own memory. */
export const countsTo = (most: number): ReadonlyArray<number> =>
  Array.from({ length: most }, (_, at) => at + 1).filter(
    (count) => count <= 4 || count === most || Number.isInteger(Math.log2(count)),
  )

/**
 * @param unit "ms" is a time, of which less is better; others are rates
 * @param rounds readings of the node without a count first, then of each count
 */
export const besideCounts = (
  name: string,
  unit: string,
  counts: ReadonlyArray<number>,
  rounds: ReadonlyArray<ReadonlyArray<number>>,
): ReadonlyArray<Figure> => {
  const of = (what: string, at: number) =>
    ofEach(rounds, name + what, unit, (readings) => readings[at] ?? Number.NaN)
  const named = counts.map((count, at) => of(`threads ${count}`, at + 1))
  const subject = of("catalog without threads", 0)
  const better = unit === "ms" ? -1 : 1
  const [best = subject] = named.toSorted((a, b) => better * (median(b.values) - median(a.values)))
  const against = unit === "ms" ? speedOver : ratioTo
  return [...named.map((one) => figureOf(one)), figureOf(subject), against(subject, best, atLeast(0.95))]
}

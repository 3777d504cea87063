// Two results side by side, figure by figure: ratios of the second to the first, and which of them differ by more than chance.
// Pure.
import type { Interval } from "../figures/Bootstrap.ts"
import type { Estimate, Figure, Part } from "./Figure.ts"
import { digits, hasBounds, rangeOf, scaled, scaleFor, unscaled } from "./Format.ts"
import type { Table } from "./Report.ts"
import type { Result, Section } from "./Result.ts"

export interface Ratio {
  readonly section: string
  readonly part: string
  readonly figure: string
  /** `median`, or another value of its distribution. */
  readonly measure: string
  readonly unit: string
  readonly a: number
  readonly b: number
  /**
   * b / a, with bounds. If a and b have 95 % intervals, the bounds are the 95 % interval of the ratio. If they have ranges of
   * readings, the bounds are the least and the greatest ratio of two readings. Otherwise the bounds are NaN.
   */
  readonly ratio: Interval
  /** True if a and b differ by more than chance. */
  readonly differs: boolean
  /** Which is better. Undefined if they do not differ, or if it is not known whether more of this figure is better. */
  readonly better: "A" | "B" | undefined
}

/** Standard normal quantile of a 95 % interval. */
const z = 1.96

/** Standard error of the logarithm of an estimate, from its 95 % interval, which is assumed to be symmetric on the logarithmic scale. */
const logError = ({ high, low }: Interval): number => (Math.log(high) - Math.log(low)) / (2 * z)

/** The ratio of two independent estimates, by the normal approximation on the logarithmic scale. */
export const ratioOf = (a: Interval, b: Interval): Interval => {
  const value = b.value / a.value
  if (!hasBounds(a) || !hasBounds(b) || a.low <= 0 || b.low <= 0) {
    return { value, low: Number.NaN, high: Number.NaN }
  }
  const error = Math.hypot(logError(a), logError(b))
  return { value, low: value * Math.exp(-z * error), high: value * Math.exp(z * error) }
}

/** b / a, with the least and the greatest ratio of a reading of b to a reading of a. NaN as bounds if one of them has only one reading. */
const rangeRatio = (a: Interval, b: Interval, isRepeated: boolean): Interval => {
  const bounded = isRepeated && hasBounds(a) && hasBounds(b) && a.low > 0 && b.low > 0
  return {
    value: b.value / a.value,
    low: bounded ? b.low / a.high : Number.NaN,
    high: bounded ? b.high / a.low : Number.NaN,
  }
}

/**
 * The probability that all readings of one side lie above all of the other by chance alone. The sides have `a` and `b` readings. If both
 * measure the same, all orders of the readings are equally likely, and in 2 of them one side is wholly above the other.
 */
const chanceApart = (a: number, b: number): number => {
  let orders = 1
  for (let i = 1; i <= a; i++) orders *= (b + i) / i
  return 2 / orders
}
/** Above this probability two ranges that do not overlap are not called different. */
const mostChance = 0.05

/** NaN where the form has null. */
const interval = ({ high, low, value }: Estimate): Interval => ({
  value: value ?? Number.NaN,
  low: low ?? Number.NaN,
  high: high ?? Number.NaN,
})

const measuresOf = ({ distribution, high, low, median }: Figure): Readonly<Record<string, Interval>> => ({
  median: interval({ value: median, low, high }),
  ...(distribution === undefined
    ? {}
    : {
        mean: interval(distribution.mean),
        p95: interval(distribution.p95),
        p99: interval(distribution.p99),
      }),
})

const moreIsBetter = ({ better, goal }: Figure): boolean | undefined => {
  if (better !== undefined) return better === "more"
  return goal === undefined ? undefined : goal.is === "at least"
}

type Pair<A> = readonly [a: A, b: A]

const ratiosOf = (section: string, part: string, [a, b]: Pair<Figure>): ReadonlyArray<Ratio> => {
  const [inA, inB] = [measuresOf(a), measuresOf(b)]
  const isRange = a.bounds === "range" && b.bounds === "range"
  const isEnough = !isRange || chanceApart(a.readings, b.readings) <= mostChance
  const more = moreIsBetter(a)
  return Object.entries(inA).flatMap(([measure, one]): ReadonlyArray<Ratio> => {
    const other = inB[measure]
    if (other === undefined || !(one.value !== 0 && other.value !== 0)) return []
    if (Number.isNaN(one.value) || Number.isNaN(other.value)) return []
    const isRepeated = a.readings > 1 && b.readings > 1
    const ratio = isRange ? rangeRatio(one, other, isRepeated) : ratioOf(one, other)
    const differs = isEnough && hasBounds(ratio) && (ratio.low > 1 || ratio.high < 1)
    const better = differs && more !== undefined ? (ratio.value > 1 === more ? "B" : "A") : undefined
    return [
      {
        section,
        part,
        figure: a.name,
        measure,
        unit: a.unit,
        a: one.value,
        b: other.value,
        ratio,
        differs,
        better,
      },
    ]
  })
}

/**
 * Pairs of the same name, in the order of `a`. If each side has only one, they are a pair whatever their names: a load or a title may
 * differ by a number.
 */
const paired = <A>(
  a: ReadonlyArray<A>,
  b: ReadonlyArray<A>,
  nameOf: (one: A) => string,
): ReadonlyArray<Pair<A>> =>
  a.flatMap((one) => {
    const other =
      b.find((each) => nameOf(each) === nameOf(one)) ?? (a.length === 1 && b.length === 1 ? b[0] : undefined)
    return other === undefined ? [] : [[one, other] as const]
  })

const sectionsOf = (a: Result, b: Result): ReadonlyArray<Pair<Section>> =>
  paired(a.sections, b.sections, ({ name }) => name)

export const compareResults = (a: Result, b: Result): ReadonlyArray<Ratio> =>
  sectionsOf(a, b).flatMap(([sectionA, sectionB]) =>
    paired<Part>(sectionA.parts, sectionB.parts, ({ title }) => title).flatMap(([partA, partB]) =>
      partA.figures.flatMap((figure) => {
        const other = partB.figures.find(({ name }) => name === figure.name)
        return other === undefined ? [] : ratiosOf(sectionA.name, partA.title, [figure, other])
      }),
    ),
  )

/** Settings that may differ between comparable results: servers name one model differently, and each run needs its own prompts. */
const free = new Set(["seed", "model", "voice", "transport", "weights"])

const comparable = ({ settings }: Result): string =>
  JSON.stringify(settings, (name, value: unknown) => (free.has(name) ? undefined : value))

/** Why two results may not be comparable, as sentences. */
export const differencesOf = (a: Result, b: Result): ReadonlyArray<string> => {
  const found: Array<string> = []
  if (a.suite !== b.suite) found.push(`the suites differ: ${a.suite} and ${b.suite}`)
  if (a.machine.cpu !== b.machine.cpu || a.machine.cores !== b.machine.cores) {
    found.push(
      `the machines differ: ${a.machine.cpu}, ${a.machine.cores} cores and ${b.machine.cpu}, ${b.machine.cores} cores`,
    )
  }
  if (comparable(a) !== comparable(b)) found.push("the settings differ (load, requests or data)")
  if (a.neighbours?.processes !== b.neighbours?.processes || a.neighbours?.nice !== b.neighbours?.nice)
    found.push("other processes computed beside one of them")
  for (const [name, { failure, sections }] of [["A", a] as const, ["B", b] as const]) {
    if (failure !== undefined) found.push(`${name} is partial: ${failure}`)
    for (const section of sections)
      for (const caution of section.cautions ?? []) found.push(`${name}, ${section.name}: ${caution}`)
  }
  if (sectionsOf(a, b).length === 0) found.push("no section of the two has the same name")
  return found
}

/** What a reader must know of the intervals. */
export const comparisonNote =
  "Intervals of load runs are by the normal approximation on the logarithmic scale; of 20 comparisons without a difference one is " +
  "expected to look like one. Of repeated readings the least and the greatest ratio of two readings are given. They differ if all " +
  "readings of one side lie above all of the other, and chance alone would do that in less than 5 % of comparisons."

const row = (one: Ratio): ReadonlyArray<string> => {
  const scale = scaleFor(one.a, one.unit)
  const { high, low, value } = one.ratio
  return [
    one.measure === "median" ? one.figure : `${one.figure}, ${one.measure}`,
    scaled(one.a, scale),
    scaled(one.b, scale),
    scale.unit,
    digits(value),
    hasBounds(one.ratio) ? rangeOf({ low, high }, unscaled) : "",
    one.differs ? (one.better === undefined ? "differs" : `${one.better} better`) : "",
  ]
}

/** The ratios of each part, under the names of its section and itself. */
export const comparedParts = (ratios: ReadonlyArray<Ratio>): ReadonlyMap<string, ReadonlyArray<Ratio>> =>
  Map.groupBy(ratios, ({ part, section }) => `${section}: ${part}`)

export const comparisonTable = (ratios: ReadonlyArray<Ratio>): Table => ({
  heading: ["figure", "A", "B", "unit", "B / A", "interval or range", ""],
  rows: ratios.map(row),
})

/** Where and when each was measured. */
export const sidesOf = (a: Result, b: Result): ReadonlyArray<readonly [name: string, what: string]> =>
  [["A", a] as const, ["B", b] as const].map(([name, { machine, revision, target }]) => [
    name,
    [...(target === undefined ? [] : [target.url]), `revision ${revision}`, machine.startedAt].join(", "),
  ])

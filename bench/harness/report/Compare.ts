// Two results side by side: ratios of the second to the first with intervals, and which of them differ by more than chance.
// Pure.

import type { Interval } from "../figures/Bootstrap.ts"
import { type FigureName, factsOf, figures } from "../figures/Figures.ts"
import { hasInterval, loadName } from "./Format.ts"
import type { FigureResult, PointResult, Result } from "./Result.ts"

export interface Ratio {
  readonly load: string
  readonly kind: string
  readonly figure: string
  readonly measure: string
  readonly unit: (typeof figures)[FigureName]["unit"]
  readonly a: number
  readonly b: number
  /** b / a with its 95 % interval; bounds are NaN where one side has none. */
  readonly ratio: Interval
  /** The interval excludes 1. */
  readonly differs: boolean
  /** Which is better, if they differ. */
  readonly better: "A" | "B" | undefined
}

/** Standard normal quantile of a 95 % interval. */
const z = 1.96

/** Standard error of the logarithm, from an interval that is taken as symmetric there. */
const logError = ({ high, low }: Interval): number => (Math.log(high) - Math.log(low)) / (2 * z)

/** The ratio of two independent estimates, by the normal approximation on the logarithmic scale. */
export const ratioOf = (a: Interval, b: Interval): Interval => {
  const value = b.value / a.value
  if (!hasInterval(a) || !hasInterval(b) || a.low <= 0 || b.low <= 0) {
    return { value, low: Number.NaN, high: Number.NaN }
  }
  const error = Math.hypot(logError(a), logError(b))
  return { value, low: value * Math.exp(-z * error), high: value * Math.exp(z * error) }
}

const measures = ["mean", "p50", "p95", "p99"] as const

const ratiosOf = (
  load: string,
  kind: string,
  name: FigureName,
  a: FigureResult,
  b: FigureResult,
): ReadonlyArray<Ratio> => {
  const { moreIsBetter = false, unit } = factsOf(name)
  return measures.flatMap((measure) => {
    if (a[measure].value === 0 || b[measure].value === 0) return []
    const ratio = ratioOf(a[measure], b[measure])
    const differs = hasInterval(ratio) && (ratio.low > 1 || ratio.high < 1)
    const better = differs ? (ratio.value > 1 === moreIsBetter ? "B" : "A") : undefined
    return [
      {
        load,
        kind,
        figure: name,
        measure,
        unit,
        a: a[measure].value,
        b: b[measure].value,
        ratio,
        differs,
        better,
      },
    ]
  })
}

const nth = <A>(list: ReadonlyArray<A>, at: number): A | undefined => list[at]

/** Points with the same load, in order; a ramp's points rarely have the same one. */
const pairs = (a: Result, b: Result): ReadonlyArray<readonly [PointResult, PointResult]> =>
  a.points.flatMap((point, at) => {
    const same = b.points.find((other) => loadName(other.load) === loadName(point.load))
    const other = same ?? (a.points.length === 1 && b.points.length === 1 ? nth(b.points, at) : undefined)
    return other === undefined ? [] : [[point, other] as const]
  })

/** Settings that may differ: servers have other names for one model, and each run needs its own prompts. */
const free = new Set(["seed", "model", "voice"])

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
  for (const [name, result] of [["A", a] as const, ["B", b] as const]) {
    if (result.points.some((point) => point.client.bottleneck !== undefined)) {
      found.push(`the client limited a point of ${name}`)
    }
  }
  if (pairs(a, b).length === 0) found.push("no point of the two has the same load")
  return found
}

export const compareResults = (a: Result, b: Result): ReadonlyArray<Ratio> =>
  pairs(a, b).flatMap(([pointA, pointB]) => {
    const load = loadName(pointA.load)
    const rates: ReadonlyArray<Ratio> = [
      ["completed", pointA.completed_per_second, pointB.completed_per_second] as const,
      ["tokens", pointA.output_tokens_per_second ?? 0, pointB.output_tokens_per_second ?? 0] as const,
      ["audio", pointA.audio_seconds_per_second ?? 0, pointB.audio_seconds_per_second ?? 0] as const,
    ]
      .filter(([, one, other]) => one > 0 && other > 0)
      .map(([figure, one, other]) => ({
        load,
        kind: "all",
        figure,
        measure: "per second",
        unit: "ratio",
        a: one,
        b: other,
        ratio: { value: other / one, low: Number.NaN, high: Number.NaN },
        differs: false,
        better: undefined,
      }))
    const kinds = Object.keys(pointA.kinds).filter((kind) => pointB.kinds[kind] !== undefined)
    return [
      ...rates,
      ...kinds.flatMap((kind) => {
        const figuresA = pointA.kinds[kind]!.figures
        const figuresB = pointB.kinds[kind]!.figures
        return (Object.keys(figuresA) as ReadonlyArray<FigureName>).flatMap((name) =>
          figures[name] === undefined || figuresB[name] === undefined
            ? []
            : ratiosOf(load, kind, name, figuresA[name]!, figuresB[name]!),
        )
      }),
    ]
  })

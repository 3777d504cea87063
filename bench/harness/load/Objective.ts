// A service objective as users write it: "ttft_p95<300ms,errors<1%". It decides whether a point of a ramp is good enough
// (by its percentiles) and which single requests count for goodput (each by its own figures). Pure.
import { type FigureName, figures } from "../figures/Figures.ts"

/** Percentile of a figure, or the mean. */
export type Measure = 50 | 90 | 95 | 99 | "mean" | "max"

type Condition =
  | {
      readonly on: "figure"
      /** Only requests of this kind, in a mixed load. */
      readonly kind?: string
      readonly figure: FigureName
      readonly measure: Measure
      /** In the figure's unit. */
      readonly below: number
    }
  /** Share of failed requests, 0 to 1. */
  | { readonly on: "errors"; readonly below: number }

export interface Objective {
  readonly text: string
  readonly conditions: ReadonlyArray<Condition>
}

/** A mistake in the text of an objective. */
export class WrongObjective extends Error {}

const measures: Readonly<Record<string, Measure>> = {
  p50: 50,
  p90: 90,
  p95: 95,
  p99: 99,
  mean: "mean",
  max: "max",
}

/** Factor from a written unit to the figure's unit. */
const factors: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  ms: { ms: 1, s: 1000 },
  s: { ms: 0.001, s: 1 },
  share: { "": 1, "%": 0.01 },
  count: { "": 1 },
  ratio: { "": 1 },
}

const form =
  /^(?:([a-z]+)\.)?([a-z][a-z0-9_]*?)(?:_(p50|p90|p95|p99|mean|max))?\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s|%)?$/

/** Characters of a condition that are read. */
const longest = 200

const names = (): string => [...Object.keys(figures), "errors"].join(", ")

const conditionOf = (written: string): Condition => {
  const text = written.length > longest ? `${written.slice(0, longest)}…` : written
  const match = form.exec(text)
  if (match === null) {
    throw new WrongObjective(
      `"${text}" is not of the form FIGURE_pNN<NUMBER with a unit, like ttft_p95<300ms`,
    )
  }
  const [, kind, name = "", measure = "p95", number = "", unit = ""] = match
  const value = Number(number)
  if (name === "errors") {
    const factor = factors.share?.[unit]
    if (factor === undefined) throw new WrongObjective(`"${text}": errors are a share, like errors<1%`)
    return { on: "errors", below: value * factor }
  }
  const figure = Object.hasOwn(figures, name) ? figures[name as FigureName] : undefined
  if (figure === undefined) throw new WrongObjective(`"${text}": no figure ${name}; there are ${names()}`)
  const factor = factors[figure.unit]?.[unit]
  if (factor === undefined) {
    const units = Object.keys(factors[figure.unit] ?? {}).filter((each) => each !== "")
    throw new WrongObjective(
      `"${text}": ${name} takes ${units.length === 0 ? "a number without a unit" : `a number with ${units.join(" or ")}`}`,
    )
  }
  return {
    on: "figure",
    ...(kind === undefined ? {} : { kind }),
    figure: name as FigureName,
    measure: measures[measure] ?? 95,
    below: value * factor,
  }
}

/** @throws WrongObjective */
export const parseObjective = (text: string): Objective => {
  const parts = text.split(",").map((part) => part.trim())
  if (parts.every((part) => part === "")) throw new WrongObjective("it has no condition")
  return { text, conditions: parts.filter((part) => part !== "").map(conditionOf) }
}

/** What is known of one request. */
export interface Judged {
  readonly kind: string
  readonly failed: boolean
  readonly figures: Partial<Readonly<Record<FigureName, number>>>
}

/**
 * True if the request counts for goodput: it did not fail, and each of its own figures that the objective names is below
 * the limit. Without an objective every request that did not fail counts.
 */
export const holds = (objective: Objective | undefined, request: Judged): boolean =>
  !request.failed &&
  (objective?.conditions ?? []).every((condition) => {
    if (condition.on === "errors") return true
    if (condition.kind !== undefined && condition.kind !== request.kind) return true
    const value = request.figures[condition.figure]
    return value === undefined || value < condition.below
  })

/** What is known of a point of the load. */
interface JudgedPoint {
  /** Share of failed requests, 0 to 1. */
  readonly errors: number
  /** For each kind that was measured. undefined if no request of that kind has the figure. */
  readonly measured: (kind: string, figure: FigureName, measure: Measure) => number | undefined
  readonly kinds: ReadonlyArray<string>
}

/** Failed requests that a point may have where the objective does not name errors: 1 %. A guess. */
const usualErrors = 0.01

/** The conditions that a point breaks, as sentences; none if it holds the objective. */
export const broken = ({ conditions }: Objective, point: JudgedPoint): ReadonlyArray<string> => {
  const found: Array<string> = []
  const errors = conditions.find((condition) => condition.on === "errors")?.below ?? usualErrors
  if (point.errors > errors || (errors === 0 && point.errors > 0))
    found.push(`${(100 * point.errors).toFixed(1)} % of the requests failed`)
  for (const condition of conditions) {
    if (condition.on === "errors") continue
    const { below, figure, kind, measure } = condition
    const values = point.kinds
      .filter((each) => kind === undefined || each === kind)
      .flatMap((each) => point.measured(each, figure, measure) ?? [])
    if (values.length === 0) found.push(`no request has ${figure}`)
    else if (Math.max(...values) >= below) {
      const name = typeof measure === "number" ? `p${measure}` : measure
      found.push(`${figure} ${name} is ${Math.max(...values).toPrecision(4)} ${figures[figure].unit}`)
    }
  }
  return found
}

// One measured quantity, in the form in which every program that measures writes it: `edgewise bench`, the project's own suites and
// `edgewise doctor`. A part holds the figures that answer one question, with the method. Pure.
import type { Interval } from "../figures/Bootstrap.ts"
import { median, spreadOf } from "../figures/Statistics.ts"

export interface Goal {
  readonly is: "at most" | "at least"
  readonly value: number
}

export const atMost = (value: number): Goal => ({ is: "at most", value })
export const atLeast = (value: number): Goal => ({ is: "at least", value })

/** The least possible work for the same result, measured in turn with the subject. */
interface Floor {
  /** The name of its own figure in the same part, where it has one. */
  readonly name: string
  readonly unit: string
  /** The median of its readings. */
  readonly value: number | null
  /** What the figure is: the subject divided by the floor, the floor divided by the subject (a speed, of times), or the time beyond it. */
  readonly is: "ratio" | "inverse ratio" | "difference"
}

/** A value with the bounds of its 95 % interval; `null`: there are too few requests for bounds. */
export interface Estimate {
  readonly value: number | null
  readonly low: number | null
  readonly high: number | null
}

/** What a load run knows of the values of its requests beside the median. */
export interface Distribution {
  readonly mean: Estimate
  readonly p90: Estimate
  readonly p95: Estimate
  readonly p99: Estimate
  readonly max: number | null
  /** HdrHistogram V2, compressed, in base64; values in thousandths of the unit. */
  readonly histogram: string
}

export interface Figure {
  /** Unique in its part; that of a detail begins with the name that it belongs to. */
  readonly name: string
  readonly unit: string
  /** Of the readings, or of the requests of a load run. `null`: it could not be read. */
  readonly median: number | null
  readonly low: number | null
  readonly high: number | null
  /** What `low` and `high` are: the lowest and the highest reading, or the 95 % interval of the median. */
  readonly bounds: "range" | "interval"
  /** How many readings or requests have a value. */
  readonly readings: number
  readonly distribution?: Distribution
  readonly floor?: Floor
  readonly goal?: Goal
  /** Whether the median meets the goal. */
  readonly met?: boolean
  /** Absent where neither is known to be better, or the goal says it. */
  readonly better?: "more" | "less"
}

/** One question: how it was measured, and the figures that answer it. */
export interface Part {
  readonly title: string
  readonly method: string
  readonly figures: ReadonlyArray<Figure>
  /** What the figures do not say, as sentences. */
  readonly notes?: ReadonlyArray<string>
}

/** Six significant digits: more than any figure has, so that a report's three are rounded once. */
export const rounded = (value: number): number => Number(value.toPrecision(6))

/** JSON has no NaN. */
const known = (value: number): number | null => (Number.isFinite(value) ? rounded(value) : null)

/** Whether the median meets the goal; a figure that could not be read meets none. */
const isMet = ({ is, value }: Goal, middle: number): boolean =>
  is === "at most" ? middle <= value : middle >= value

/** Readings of one quantity before they are a figure. */
export interface Readings {
  readonly name: string
  readonly unit: string
  readonly values: ReadonlyArray<number>
}

export const readingsOf = (name: string, unit: string, values: ReadonlyArray<number>): Readings => ({
  name,
  unit,
  values,
})

/** A reading of each round. */
export const ofEach = <Round>(
  rounds: ReadonlyArray<Round>,
  name: string,
  unit: string,
  reading: (round: Round) => number,
): Readings => readingsOf(name, unit, rounds.map(reading))

export const rangeFigure = (
  name: string,
  unit: string,
  { high, low, median: middle, readings }: Pick<Figure, "median" | "low" | "high" | "readings">,
): Figure => ({ name, unit, median: middle, low, high, bounds: "range", readings })

/** @param name begins with two spaces if it is a detail of the figure above it */
export const figure = (
  name: string,
  unit: string,
  values: ReadonlyArray<number>,
  goal?: Goal,
  floor?: Floor,
): Figure => {
  const { high, low, median: middle, readings } = spreadOf(values)
  const spread = { median: known(middle), low: known(low), high: known(high), readings }
  return {
    ...rangeFigure(name, unit, spread),
    ...(floor === undefined ? {} : { floor }),
    ...(goal === undefined ? {} : { goal, met: isMet(goal, middle) }),
  }
}

export const figureOf = ({ name, unit, values }: Readings, goal?: Goal): Figure =>
  figure(name, unit, values, goal)

/**
 * A detail of the subject's figure: reading by reading against the floor. The two were measured in turn, so a busy period of the
 * machine affected both halves of a pair. @throws if one has more readings
 */
const against =
  (is: Floor["is"], words: string, of: (subject: number, floor: number) => number) =>
  (subject: Readings, floor: Readings, goal?: Goal): Figure => {
    if (subject.values.length !== floor.values.length) throw new Error("readings without a partner")
    const values = subject.values.map((value, at) => of(value, floor.values[at] ?? Number.NaN))
    const unit = is === "difference" ? subject.unit : "x"
    const value = known(median(floor.values))
    return figure(`  ${words} ${floor.name}`, unit, values, goal, {
      name: floor.name,
      unit: floor.unit,
      value,
      is,
    })
  }

export const ratioTo = against("ratio", "over", (subject, floor) => subject / floor)
/** Of times, for which less is faster. */
export const speedOver = against("inverse ratio", "speed over", (subject, floor) => floor / subject)
export const beyond = against("difference", "beyond", (subject, floor) => subject - floor)

/** The readings times a number, under a name that says so: what a goal allows of a floor. */
export const times = (factor: number, { name, unit, values }: Readings): Readings => ({
  name: `${factor} x ${name}`,
  unit,
  values: values.map((value) => factor * value),
})

/** Three figures: the floor, what was measured, and the second over the first. */
export const besideFloor = (floor: Readings, subject: Readings, goal?: Goal): ReadonlyArray<Figure> => [
  figureOf(floor),
  figureOf(subject),
  ratioTo(subject, floor, goal),
]

/** A number that is counted once, or a rate of the whole run: it has no spread. */
export const single = (name: string, unit: string, value: number, better?: Figure["better"]): Figure => ({
  ...figure(name, unit, [value]),
  ...(better === undefined ? {} : { better }),
})

const estimate = ({ high, low, value }: Interval): Estimate => ({
  value: known(value),
  low: known(low),
  high: known(high),
})

/** A figure over the requests of a load run. */
export const ofRequests = (
  name: string,
  facts: { readonly unit: string; readonly moreIsBetter?: boolean },
  readings: number,
  middle: Interval,
  rest?: {
    readonly [Name in "mean" | "p90" | "p95" | "p99"]: Interval
  } & { readonly max: number; readonly histogram: string },
): Figure => {
  const { high, low, value } = estimate(middle)
  return {
    name,
    unit: facts.unit,
    median: value,
    low,
    high,
    bounds: "interval",
    readings,
    ...(rest === undefined
      ? {}
      : {
          distribution: {
            mean: estimate(rest.mean),
            p90: estimate(rest.p90),
            p95: estimate(rest.p95),
            p99: estimate(rest.p99),
            max: known(rest.max),
            histogram: rest.histogram,
          },
        }),
    better: facts.moreIsBetter === true ? "more" : "less",
  }
}

/** Details get the name that they belong to in front of theirs, so that each name is unique and says what it is. */
export const named = (part: Part): Part => {
  let above = ""
  const figures = part.figures.map((one) => {
    const name = one.name.trim()
    if (one.name === name) above = name
    return one.name === name ? one : { ...one, name: `${above}: ${name}` }
  })
  return { ...part, figures }
}

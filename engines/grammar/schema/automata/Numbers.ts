// Numbers within bounds. Without exponents, `-0`, or zeros at the end of a fraction: so JavaScript and Python print what
// they parsed.

import type { Expression } from "../../Expression.ts"
import { isEmpty, TooManyStates } from "./Automata.ts"
import { isZero, magnitudeOf, nextDown, nextUp, printScaled } from "./Decimal.ts"
import { type Limit, magnitudes, type Step } from "./Magnitudes.ts"
import { anyOfTexts } from "./Texts.ts"

export interface Bound {
  readonly value: number
  readonly exclusive: boolean
}

interface NumberLimits {
  readonly integer: boolean
  readonly least: Bound | undefined
  readonly most: Bound | undefined
  /** The number is a multiple of all of these. They are positive. */
  readonly multiplesOf: ReadonlyArray<number>
}

/** Divisors up to this are held by remainders, larger ones by a list of multiples. */
const maxRemainders = 360
const listedMultiples = 1_000

const gcd = (a: bigint, b: bigint): bigint => (b === 0n ? a : gcd(b, a % b))

const stepOf = (multiplesOf: ReadonlyArray<number>): Step | undefined => {
  if (multiplesOf.length === 0) return undefined
  const sizes = multiplesOf.map(magnitudeOf)
  const scale = Math.max(...sizes.map((size) => size.fraction.length))
  const units = sizes
    .map((size) => BigInt(size.whole + size.fraction.padEnd(scale, "0")))
    .reduce((a, b) => (a / gcd(a, b)) * b)
  return { units, scale }
}

const zero: Limit = { than: { whole: "0", fraction: "" }, exclusive: false }

/** Divided by 10 ** `places`. */
const shifted = (limit: Limit, places: number): Limit => {
  const whole = limit.than.whole.padStart(places + 1, "0")
  const fraction = whole.slice(whole.length - places) + limit.than.fraction
  return {
    than: {
      whole: whole.slice(0, whole.length - places).replace(/^0+(?=\d)/, ""),
      fraction: fraction.replace(/0+$/, ""),
    },
    exclusive: limit.exclusive,
  }
}

/** Up to 1,000 multiples, beginning at the one that is nearest to zero. */
const listed = (limits: NumberLimits, step: Step): Expression | undefined => {
  const inUnits = (value: number): bigint => {
    const size = magnitudeOf(value)
    const scaled = BigInt(size.whole + size.fraction.padEnd(step.scale, "0").slice(0, step.scale))
    return value < 0 ? -scaled : scaled
  }
  const fits = (units: bigint): boolean => {
    const value = Number(printScaled(units, step.scale))
    const { least, most } = limits
    if (!Number.isFinite(value) || (limits.integer && !Number.isInteger(value))) return false
    if (least !== undefined && (least.exclusive ? value <= least.value : value < least.value)) return false
    return !(most !== undefined && (most.exclusive ? value >= most.value : value > most.value))
  }
  const nearest =
    limits.least !== undefined && limits.least.value > 0
      ? limits.least.value
      : limits.most !== undefined && limits.most.value < 0
        ? limits.most.value
        : 0
  const first = inUnits(nearest) / step.units
  const found: Array<string> = []
  for (let i = -1n; i < BigInt(listedMultiples); i++) {
    for (const factor of i <= 0n ? [first + i] : [first + i, first - i]) {
      if (fits(factor * step.units)) found.push(printScaled(factor * step.units, step.scale))
    }
  }
  if (found.length === 0) return undefined
  return { kind: "automaton", automaton: anyOfTexts(found.slice(0, listedMultiples)) }
}

const maxExact = 2 ** 53

/** Beyond 2 ** 53 neighbouring integers are the same double: an exclusive bound becomes its neighbour. */
const limitOf = (bound: Bound, side: "least" | "most"): Limit => {
  const size = Math.abs(bound.value)
  if (!bound.exclusive || size < maxExact) return { than: magnitudeOf(size), exclusive: bound.exclusive }
  const next = side === "least" ? nextUp(size) : nextDown(size)
  if (!Number.isFinite(next)) return { than: magnitudeOf(size), exclusive: true }
  return { than: magnitudeOf(next), exclusive: false }
}

/** The stricter one of a bound and 2 ** 53 on its side. */
const exactBound = (bound: Bound | undefined, side: -1 | 1): Bound =>
  bound === undefined || side * bound.value > maxExact ? { value: side * maxExact, exclusive: false } : bound

/**
 * The numbers within limits, or undefined if there is none. Multiples are at most 2 ** 53: validators divide doubles, and
 * larger ones are rounded.
 */
export const numbers = (all: NumberLimits): Expression | undefined => {
  const limits =
    all.multiplesOf.length === 0
      ? all
      : { ...all, least: exactBound(all.least, -1), most: exactBound(all.most, 1) }
  if (limits.least !== undefined && limits.most !== undefined && limits.least.value > limits.most.value) {
    return undefined
  }
  const step = stepOf(limits.multiplesOf)
  try {
    const zeros = step === undefined || step.scale > 0 ? 0 : /0*$/.exec(step.units.toString())![0].length
    const small =
      step === undefined ? undefined : { units: step.units / 10n ** BigInt(zeros), scale: step.scale }
    if (small !== undefined && small.units > BigInt(maxRemainders)) return listed(limits, step!)
    for (const tiny of limits.integer || step !== undefined ? [false] : [false, true]) {
      const parts = signed(limits, small, zeros, tiny)
      if (parts.length > 0) return parts.length === 1 ? parts[0]! : { kind: "choice", of: parts }
    }
    return step === undefined ? undefined : listed(limits, step)
  } catch (cause) {
    if (cause instanceof TooManyStates && step !== undefined) return listed(limits, step)
    throw cause
  }
}

/** Positive and negative numbers. `zeros`: they are multiples of `step` * 10 ** `zeros`. */
const signed = (
  { integer, least, most }: NumberLimits,
  step: Step | undefined,
  zeros: number,
  tiny: boolean,
): ReadonlyArray<Expression> => {
  const parts: Array<Expression> = []
  const sized = (low: Limit, high: Limit | undefined): ReadonlyArray<Expression> => {
    const scaledLow = shifted(low, zeros)
    const least = zeros > 0 && isZero(scaledLow.than) ? { ...scaledLow, exclusive: true } : scaledLow
    const most = high === undefined ? undefined : shifted(high, zeros)
    const automaton = magnitudes(least, most, integer || zeros > 0, step, tiny)
    if (isEmpty(automaton)) return []
    const digits: Expression = { kind: "automaton", automaton }
    return zeros === 0
      ? [digits]
      : [{ kind: "sequence", of: [digits, { kind: "text", text: "0".repeat(zeros) }] }]
  }
  const mayBe = (value: number) =>
    (least === undefined || value > least.value || (value === least.value && !least.exclusive)) &&
    (most === undefined || value < most.value || (value === most.value && !most.exclusive))
  if (zeros > 0 && mayBe(0)) parts.push({ kind: "text", text: "0" })
  if (most === undefined || most.value > 0 || (most.value === 0 && !most.exclusive)) {
    const low = least === undefined || least.value < 0 ? zero : limitOf(least, "least")
    parts.push(...sized(low, most === undefined ? undefined : limitOf(most, "most")))
  }
  if (least === undefined || least.value < 0) {
    const bound = most === undefined || most.value >= 0 ? zero : limitOf(most, "least")
    const low = isZero(bound.than) ? { ...bound, exclusive: true } : bound
    for (const part of sized(low, least === undefined ? undefined : limitOf(least, "most"))) {
      parts.push({ kind: "sequence", of: [{ kind: "text", text: "-" }, part] })
    }
  }
  return parts
}

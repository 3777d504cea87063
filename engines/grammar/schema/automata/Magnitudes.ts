// Numbers without a sign as automata over their digits.

import type { Automaton } from "../../Expression.ts"
import { explore } from "./Automata.ts"
import type { Magnitude } from "./Decimal.ts"

/** Digits of an integer unless `least` or `most` demand more: all of 64 bits. */
const wholeDigits = 19
/** Digits of a number with a fraction: any decimal of 15 digits survives a double. */
const digits = 15
/** Python prints exponents for numbers with more zeros than this after the point. */
const leadingZeros = 3
/** Digits of multiples. Validators divide doubles, and tell multiples from others only if the quotient is small. */
const multipleDigits = 12

/** The number is a multiple of `units` / 10 ** `scale`. */
export interface Step {
  readonly units: bigint
  readonly scale: number
}

export interface Limit {
  readonly than: Magnitude
  readonly exclusive: boolean
}

/** -1, 0, 1: the digits read so far are less than, equal to, or more than as many digits of the bound. */
type Order = -1 | 0 | 1

const order = (before: Order, digit: number, other: string | undefined): Order =>
  before !== 0 ? before : (Math.sign(digit - Number(other ?? 0)) as Order)

interface Reading {
  /** Digits before the point. */
  readonly whole: number
  /** Digits after the point; -1 before the point. */
  readonly fraction: number
  readonly least: Order
  readonly most: Order
  readonly remainder: number
  /** All digits so far are zero. */
  readonly zero: boolean
  /** The last digit is a zero. */
  readonly endsWithZero: boolean
}

/** Numbers that are not negative. `tiny`: with as many digits after the point as a double can have. */
export const magnitudes = (
  least: Limit,
  most: Limit | undefined,
  integer: boolean,
  step: Step | undefined,
  tiny: boolean,
): Automaton => {
  const modulus = step === undefined ? 1 : Number(step.units)
  const scale = step?.scale ?? 0
  const fractions = step === undefined ? (tiny ? 330 : digits) : scale
  const usual = step === undefined ? wholeDigits : Math.max(1, multipleDigits - scale)
  const longest = least.than.whole.length > usual ? least.than.whole.length + 1 : usual
  const wholes = Math.min(longest, most?.than.whole.length ?? longest)

  const compared = (order: Order, reading: Reading, bound: Magnitude): Order => {
    if (reading.fraction >= 0) return order
    return reading.whole === bound.whole.length ? order : reading.whole < bound.whole.length ? -1 : 1
  }
  /** With the digits of the bound that were not compared yet. */
  const final = (order: Order, reading: Reading, bound: Magnitude): Order =>
    order === 0 && bound.fraction.length > Math.max(0, reading.fraction) ? -1 : order

  const accepts = (reading: Reading): boolean => {
    if (reading.whole === 0 || reading.fraction === 0) return false
    if (reading.fraction > 0 && reading.endsWithZero) return false
    const low = final(compared(reading.least, reading, least.than), reading, least.than)
    if (low < 0 || (low === 0 && least.exclusive)) return false
    if (most !== undefined) {
      const high = final(compared(reading.most, reading, most.than), reading, most.than)
      if (high > 0 || (high === 0 && most.exclusive)) return false
    }
    let remainder = reading.remainder
    for (let i = Math.max(0, reading.fraction); i < scale; i++) remainder = (remainder * 10) % modulus
    return remainder === 0
  }

  const start: Reading = {
    whole: 0,
    fraction: -1,
    least: 0,
    most: 0,
    remainder: 0,
    zero: true,
    endsWithZero: false,
  }
  return explore(
    start,
    (r) =>
      [r.whole, r.fraction, r.least, r.most, r.remainder, r.zero ? 1 : 0, r.endsWithZero ? 1 : 0].join(","),
    function* (r) {
      const inFraction = r.fraction >= 0
      if (!inFraction && r.whole > 0 && !integer && (tiny || r.whole < digits)) {
        const left = compared(r.least, r, least.than)
        const right = most === undefined ? 0 : compared(r.most, r, most.than)
        const whole = step === undefined && !tiny ? r.whole : 1
        yield [0x2e, 0x2e, { ...r, whole, fraction: 0, least: left, most: right, endsWithZero: false }]
      }
      if (inFraction && (r.fraction >= fractions || (!tiny && r.whole + r.fraction >= digits))) return
      if (!inFraction && (r.whole >= wholes || (r.whole === 1 && r.zero))) return
      for (let digit = 0; digit < 10; digit++) {
        if (inFraction && !tiny && r.zero && digit === 0 && r.fraction >= leadingZeros) continue
        const place = inFraction ? r.fraction : r.whole
        const of = (limit: Limit) => (inFraction ? limit.than.fraction[place] : limit.than.whole[place])
        // More digits before the point than the bound has: larger, unless the bound itself is compared later.
        const low = !inFraction && place >= least.than.whole.length ? 1 : order(r.least, digit, of(least))
        const high =
          most === undefined
            ? 0
            : !inFraction && place >= most.than.whole.length
              ? 1
              : order(r.most, digit, of(most))
        if (inFraction && (low < 0 || (most !== undefined && high > 0))) continue
        yield [
          0x30 + digit,
          0x30 + digit,
          {
            whole: inFraction ? r.whole : r.whole + 1,
            fraction: inFraction ? r.fraction + 1 : -1,
            least: low,
            most: high,
            remainder: (r.remainder * 10 + digit) % modulus,
            zero: r.zero && digit === 0,
            endsWithZero: inFraction && digit === 0,
          },
        ]
      }
    },
    accepts,
  )
}

// Money in whole micro-dollars (1e-6 USD): the cost of a request, and parsing and formatting of amounts. Pure.
//
// Amounts are safe integers, not bigint: 2^53 micro-dollars are 9 billion USD, more than the largest balance
// (`maxMicroDollars`), and numbers work unchanged in JSON, SQLite and comparisons. Only the product of a price and a
// count can exceed 2^53, so `costOf` multiplies in bigint.
import type { ModelEntry } from "./ModelEntry.ts"
import type { Usage } from "./Usage.ts"

type Price = ModelEntry["price"]

export const microDollarsPerDollar = 1_000_000

/** 1e9 USD: the largest amount or balance. A guess, far above use and far below 2^53. */
export const maxMicroDollars = 1_000_000_000 * microDollarsPerDollar

const tokensPerPrice = 1_000_000n
const msPerMinute = 60_000n
/** A common denominator of "per 1M tokens" and "per minute", so that one request is rounded once. */
const scale = tokensPerPrice * msPerMinute

/**
 * The cost of a request in micro-dollars. The exact sum of its parts is rounded **up** once, at the end: a request that
 * used anything of a priced model costs at least one micro-dollar, and less than one above the exact price.
 */
export const costOf = (price: Price, usage: Usage): number => {
  const tokens =
    BigInt(usage.inputTokens) * BigInt(price.inputPerMillionTokens ?? 0) +
    BigInt(usage.outputTokens) * BigInt(price.outputPerMillionTokens ?? 0)
  const audio = BigInt(usage.audioMs) * BigInt(price.perMinute ?? 0)
  return Number((tokens * msPerMinute + audio * tokensPerPrice + scale - 1n) / scale)
}

/** "5", "0.25", "12.000001" → micro-dollars. Undefined for all other texts and beyond `maxMicroDollars`. */
export const parseUsd = (text: string): number | undefined => {
  const match = /^(\d{1,10})(?:\.(\d{1,6}))?$/.exec(text)
  if (match === null) return undefined
  const [, whole = "", fraction = ""] = match
  const microDollars = Number(whole) * microDollarsPerDollar + Number(fraction.padEnd(6, "0"))
  return microDollars <= maxMicroDollars ? microDollars : undefined
}

/** Micro-dollars → "5.00", "0.25", "0.000123": at least two decimals, never rounded. */
export const formatUsd = (microDollars: number): string => {
  const magnitude = Math.abs(microDollars)
  const whole = Math.floor(magnitude / microDollarsPerDollar)
  const fraction = String(magnitude % microDollarsPerDollar).padStart(6, "0")
  const trimmed = fraction.replace(/0{1,4}$/, "")
  return `${microDollars < 0 ? "-" : ""}${whole}.${trimmed}`
}

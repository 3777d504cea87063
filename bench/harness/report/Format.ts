// Numbers as text, with as many digits as they are worth: one rule for all tables, pages and sentences. Pure.
import type { Interval } from "../figures/Bootstrap.ts"
import type { Estimate } from "./Figure.ts"
import type { LoadSize } from "./Result.ts"

/** Three digits, whole numbers from 100 on, without an exponent; a dash for what could not be measured. */
export const digits = (value: number | null): string => {
  if (value === null || !Number.isFinite(value)) return "-"
  const size = Math.abs(value)
  // toPrecision would write an exponent.
  if (size < 1e-6) return "0"
  return size >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))
}

/** In what a row of a table is written: figures of one row have one unit, and short numbers. */
export interface Scale {
  readonly factor: number
  readonly unit: string
}

export const unscaled: Scale = { factor: 1, unit: "" }

/** A share is written in percent, a long time in seconds. */
export const scaleFor = (value: number | null, unit: string): Scale => {
  if (unit === "share") return { factor: 100, unit: "%" }
  if (unit === "ms" && Math.abs(value ?? 0) >= 10_000) return { factor: 0.001, unit: "s" }
  return { factor: 1, unit: unit === "count" || unit === "ratio" ? "" : unit }
}

export const scaled = (value: number | null, { factor }: Scale): string =>
  value === null ? "-" : digits(value * factor)

/** With its unit. */
export const shown = (value: number | null, unit: string): string => {
  const scale = scaleFor(value, unit)
  return `${scaled(value, scale)} ${scale.unit}`.trimEnd()
}

/** Empty where a bound is missing. */
export const rangeOf = ({ high, low }: Pick<Estimate, "low" | "high">, scale: Scale): string =>
  low === null || high === null ? "" : `${scaled(low, scale)} to ${scaled(high, scale)}`

export const hasBounds = ({ high, low }: Interval): boolean => Number.isFinite(low) && Number.isFinite(high)

export const loadName = (load: LoadSize): string =>
  load.loop === "open" ? `${digits(load.ratePerSecond)} requests/s` : `${load.clients} at once`

// Numbers of results as text: with their units, and as many digits as they are worth. Pure.
import type { Interval } from "../figures/Bootstrap.ts"
import type { FigureFacts } from "../figures/Figures.ts"

type Unit = FigureFacts["unit"]

/** Three digits, without an exponent. */
export const digits = (value: number): string => {
  if (!Number.isFinite(value)) return "–"
  const size = Math.abs(value)
  // toPrecision would write an exponent.
  if (size < 1e-6) return "0"
  return size >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))
}

export const shown = (value: number, unit: Unit): string => {
  if (!Number.isFinite(value)) return "–"
  switch (unit) {
    case "ms":
      return value >= 10_000 ? `${digits(value / 1000)} s` : `${digits(value)} ms`
    case "s":
      return `${digits(value)} s`
    case "share":
      return `${digits(100 * value)} %`
    case "count":
    case "ratio":
      return digits(value)
  }
}

/** JSON has null where there is no interval. */
export const hasInterval = ({ high, low }: Interval): boolean => Number.isFinite(low) && Number.isFinite(high)

export const withInterval = (interval: Interval, unit: Unit): string =>
  hasInterval(interval)
    ? `${shown(interval.value, unit)} (${shown(interval.low, unit)}–${shown(interval.high, unit)})`
    : shown(interval.value, unit)

export const loadName = (
  load:
    | { readonly loop: "open"; readonly rate_per_second: number }
    | { readonly loop: "closed"; readonly clients: number },
): string => (load.loop === "open" ? `${digits(load.rate_per_second)} requests/s` : `${load.clients} at once`)

// Formats numbers for tables and sentences. Pure.
import { rounded } from "./Document.ts"

/** Three significant digits, whole numbers from 100 on. */
export const shown = (value: number): string =>
  Math.abs(value) >= 100 ? String(Math.round(value)) : String(rounded(value))

export const orDash = (value: number | null): string => (value === null ? "-" : shown(value))

const mebibyte = 1024 * 1024

export const bytesShown = (bytes: number): string =>
  bytes >= 1024 * mebibyte
    ? `${(bytes / 1024 / mebibyte).toFixed(1)} GiB`
    : `${Math.round(bytes / mebibyte)} MiB`

export const msShown = (ms: number): string => {
  if (ms >= 1_000) return `${shown(ms / 1_000)} s`
  return ms < 0.1 ? `${shown(ms * 1_000)} µs` : `${shown(ms)} ms`
}

export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

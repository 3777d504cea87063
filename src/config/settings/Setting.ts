// One row of the table of settings, and the parsers that several rows use. Pure.

export interface Setting<A> {
  readonly variable: string
  /** The flag's name without `--`. */
  readonly flag: string
  /** What stands for the value in `--help`: its unit where it has one (`SECONDS`), else its kind, or the words it may be. */
  readonly value: string
  readonly help: string
  readonly allowed: string
  readonly fallback: A
  /** How `--help` names the default. Absent: as it would be written. */
  readonly fallbackText?: string
  /** Hides parts of a value that must not be shown. Absent: all of it may be shown. */
  readonly shown?: (text: string) => string
  /** Undefined if the text is not allowed. */
  readonly parse: (text: string) => A | undefined
}

export const integer = (minimum: number, maximum: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  return value >= minimum && value <= maximum ? value : undefined
}

export const oneOf =
  <const A extends string>(values: ReadonlyArray<A>) =>
  (text: string): A | undefined =>
    values.find((value) => value === text)

export const parseBoolean = (text: string): boolean | undefined =>
  text === "true" ? true : text === "false" ? false : undefined

export const nonEmpty = (text: string) => (text === "" ? undefined : text)

export const parseUrl = (text: string): string | undefined =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : undefined

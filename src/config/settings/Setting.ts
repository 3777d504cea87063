// One row of the table of settings, and the parsers that several rows use. Pure.

export interface Setting<A> {
  /** `EDGEWISE_` and its name in capitals. */
  readonly variable: string
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

/** The name of a setting's flag without `--`: `data-dir` of `EDGEWISE_DATA_DIR`. */
export const flagOfSetting = ({ variable }: Pick<Setting<unknown>, "variable">): string =>
  variable.replace("EDGEWISE_", "").toLowerCase().replaceAll("_", "-")

/** `allowed` and `parse` of a number. */
export const integer = (minimum: number, maximum: number) => ({
  allowed: `an integer from ${minimum} to ${maximum}`,
  parse: (text: string): number | undefined => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    return value >= minimum && value <= maximum ? value : undefined
  },
})

/** `allowed` and `parse` of one of several words. */
export const oneOf = <const A extends string>(values: ReadonlyArray<A>) => ({
  allowed: `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`,
  parse: (text: string): A | undefined => values.find((value) => value === text),
})

/** `value`, `allowed` and `parse` of a switch. */
export const trueOrFalse = {
  value: "true|false",
  allowed: "true or false",
  parse: (text: string): boolean | undefined =>
    text === "true" ? true : text === "false" ? false : undefined,
}

export const nonEmpty = (text: string) => (text === "" ? undefined : text)

export const parseUrl = (text: string): string | undefined =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : undefined

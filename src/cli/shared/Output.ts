// What the commands' output and options have in common: JSON documents, tables, times, and the options `--json` and `--org`.
import { Console, DateTime } from "effect"
import { Flag } from "effect/cli"
import { accountNameRule, isAccountName } from "#store/accounts/AccountName.ts"

/** Every command's `--json`: one document on standard output and nothing else there. */
export const jsonFlag = Flag.Boolean("json").pipe(
  Flag.withDescription("Print one JSON document"),
  Flag.withDefault(false),
)

export const printJson = (document: unknown) => Console.log(JSON.stringify(document, null, 2))

/** `--org` of the commands that work inside one. */
export const orgFlag = Flag.String("org").pipe(
  Flag.filter(isAccountName, () => accountNameRule),
  Flag.withMetavar("NAME"),
  Flag.withDescription("Organization"),
)

/** Rows of text under a heading, in columns; numbers to the right. */
export const table = (heading: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const lines = [heading, ...rows]
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const isNumber = heading.map((_, column) => rows.every((row) => /^-?[\d.]+$/.test(row[column] ?? "")))
  const cell = (text: string, column: number) =>
    rows.length > 0 && isNumber[column] ? text.padStart(widths[column]!) : text.padEnd(widths[column]!)
  return lines.map((line) => line.map(cell).join("  ").trimEnd()).join("\n")
}

export const isoTime = (ms: number): string => DateTime.formatIso(DateTime.makeUnsafe(ms))

// Shared output and options of the commands: JSON documents, tables, times, `--json`, `--org`, and the refusal of options
// that exclude each other.
import { Console, DateTime } from "effect"
import { CliError, Flag } from "effect/cli"
import { accountNameRule, isAccountName } from "#store/accounts/AccountName.ts"

/** `--json` of every command: prints one document, and nothing else, on standard output. */
export const jsonFlag = Flag.Boolean("json").pipe(
  Flag.withDescription("Print one JSON document"),
  Flag.withDefault(false),
)

export const printJson = (document: unknown) => Console.log(JSON.stringify(document, null, 2))

/** Ends the command `edgewise PATH` with its help and this message. */
export const wrongUsage = (path: ReadonlyArray<string>, message: string) =>
  new CliError.ShowHelp({
    commandPath: ["edgewise", ...path],
    errors: [new CliError.ValidationError({ message })],
  })

/** `--org` of the commands that work on one organization. */
export const orgFlag = Flag.String("org").pipe(
  Flag.filter(isAccountName, () => accountNameRule),
  Flag.withMetavar("NAME"),
  Flag.withDescription("Organization"),
)

/** Formats rows in columns under a heading; numbers are right-aligned. */
export const table = (heading: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const lines = [heading, ...rows]
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const isNumber = heading.map((_, column) => rows.every((row) => /^-?[\d.]+$/.test(row[column] ?? "")))
  const cell = (text: string, column: number) =>
    rows.length > 0 && isNumber[column] ? text.padStart(widths[column]!) : text.padEnd(widths[column]!)
  return lines.map((line) => line.map(cell).join("  ").trimEnd()).join("\n")
}

export const isoTime = (ms: number): string => DateTime.formatIso(DateTime.makeUnsafe(ms))

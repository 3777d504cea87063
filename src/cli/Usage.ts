// `edgewise usage`: metered usage and its price, as a table, one JSON document or CSV. Reads the store, changes nothing.
import { Console, DateTime, Effect, Option } from "effect"
import { CliError, Command, Flag } from "effect/cli"
import { formatUsd } from "#domain/Money.ts"
import { type ModelUsage, totalMicroDollars } from "#domain/Usage.ts"
import { accountNameRule, isAccountName } from "#store/AccountName.ts"
import { Accounts } from "#store/Accounts.ts"
import { storeLayerFromEnvironment } from "#store/Store.ts"
import { UsageLedger } from "#store/UsageLedger.ts"

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

const seconds = (ms: number): number => ms / 1000

export const usageDocument = (rows: ReadonlyArray<ModelUsage>) =>
  rows.map((row) => ({
    model: row.model,
    kind: row.kind,
    requests: row.requests,
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
    audio_seconds: seconds(row.audioMs),
    usd: formatUsd(row.microDollars),
  }))

const heading = ["model", "kind", "requests", "input_tokens", "output_tokens", "audio_seconds", "usd"]
const cells = (rows: ReadonlyArray<ModelUsage>) =>
  usageDocument(rows).map((row) => Object.values(row).map(String))

export const usageTable = (rows: ReadonlyArray<ModelUsage>): string =>
  rows.length === 0 ? "no usage" : table(heading, cells(rows))

/** Model ids and kinds hold no comma and no quote, so no field needs quoting. */
const usageCsv = (rows: ReadonlyArray<ModelUsage>): string =>
  [heading, ...cells(rows)].map((line) => line.join(",")).join("\n")

/** A day (UTC) or an exact time with its offset: what reads the same everywhere. */
const parseSince = (text: string): Option.Option<number> => {
  const accepted = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
  // Date.parse reads February 31 as March 3; the day alone, written back, must be the day that was read.
  const day = text.slice(0, 10)
  const dayMs = accepted ? Date.parse(day) : Number.NaN
  const ms = Date.parse(text)
  if (Number.isNaN(dayMs) || Number.isNaN(ms) || isoTime(dayMs).slice(0, 10) !== day) return Option.none()
  return Option.some(ms)
}

export const usage = Command.make(
  "usage",
  {
    org: orgFlag,
    since: Flag.String("since").pipe(
      Flag.filterMap(parseSince, () => "a date like 2026-01-31 or a time like 2026-01-31T12:00:00Z"),
      Flag.withMetavar("DATE"),
      Flag.withDescription("Only what was used from this day (UTC) or time on"),
      Flag.optional,
    ),
    json: jsonFlag,
    csv: Flag.Boolean("csv").pipe(
      Flag.withDescription("Print comma-separated values"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn(function* ({ org, since, json, csv }) {
    if (json && csv) {
      const error = new CliError.ValidationError({ message: "--json and --csv exclude each other" })
      return yield* new CliError.ShowHelp({ commandPath: ["edgewise", "usage"], errors: [error] })
    }
    const { id } = yield* (yield* Accounts).showOrg(org)
    const sinceMs = Option.getOrElse(since, () => 0)
    const rows = yield* (yield* UsageLedger).usage(id, sinceMs)
    const total = formatUsd(totalMicroDollars(rows))
    if (json) {
      return yield* printJson({
        org,
        since: Option.isSome(since) ? isoTime(sinceMs) : null,
        usage: usageDocument(rows),
        total_usd: total,
      })
    }
    if (csv) return yield* Console.log(usageCsv(rows))
    yield* Console.log(`${usageTable(rows)}\ntotal ${total} USD`)
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(Command.withDescription("Metered usage of an organization and its price"))

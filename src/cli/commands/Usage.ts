// `edgewise usage`: metered usage and its price, as a table, one JSON document or CSV. Reads the store, changes nothing.
import { Console, Effect, Option } from "effect"
import { CliError, Command, Flag } from "effect/cli"
import { formatUsd } from "#domain/models/Money.ts"
import { type ModelUsage, totalMicroDollars, type UsageReceipt } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { storeLayerFromEnvironment } from "#store/Store.ts"
import { isoTime, jsonFlag, orgFlag, printJson, table } from "../shared/Output.ts"

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

const receiptDocument = (rows: ReadonlyArray<UsageReceipt>) =>
  rows.map((row) => ({
    receipt_id: row.receiptId,
    at: isoTime(row.atMs),
    user: row.user,
    key_id: row.keyId,
    model: row.model,
    kind: row.kind,
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
    audio_seconds: seconds(row.audioMs),
    usd: formatUsd(row.microDollars),
  }))

const receiptHeading = [
  "receipt_id",
  "at",
  "user",
  "key_id",
  "model",
  "kind",
  "input_tokens",
  "output_tokens",
  "audio_seconds",
  "usd",
]

const heading = ["model", "kind", "requests", "input_tokens", "output_tokens", "audio_seconds", "usd"]
const cells = (rows: ReadonlyArray<ModelUsage>) =>
  usageDocument(rows).map((row) => Object.values(row).map(String))

export const usageTable = (rows: ReadonlyArray<ModelUsage>): string =>
  rows.length === 0 ? "no usage" : table(heading, cells(rows))

/** Ids, names, times and kinds hold no comma and no quote, so no field needs quoting. */
const csvOf = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, ...rows].map((line) => line.join(",")).join("\n")

interface Printing {
  readonly head: ReadonlyArray<string>
  readonly rows: ReadonlyArray<object>
  /** Of the JSON document. */
  readonly name: string
  readonly total: string
}

/** What a command found, in the form that was asked for. */
const printUsage = (
  { head, name, rows, total }: Printing,
  about: object,
  form: { readonly json: boolean; readonly csv: boolean },
) => {
  if (form.json) return printJson({ ...about, [name]: rows, total_usd: total })
  const lines = rows.map((row) => Object.values(row).map(String))
  if (form.csv) return Console.log(csvOf(head, lines))
  return Console.log(`${lines.length === 0 ? "no usage" : table(head, lines)}\ntotal ${total} USD`)
}

/** Receipts that are printed where nobody says how many. A guess: a screenful for a file, not for a person. */
const defaultReceipts = 1_000
/** Read and printed as one text. */
const maxReceipts = 1_000_000

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
    receipts: Flag.Boolean("receipts").pipe(
      Flag.withDescription(
        "One line for every priced answer, by the id in its X-Receipt-Id, the newest first",
      ),
      Flag.withDefault(false),
    ),
    limit: Flag.Int("limit").pipe(
      Flag.filter(
        (value) => value >= 1 && value <= maxReceipts,
        () => `an integer from 1 to ${maxReceipts}`,
      ),
      Flag.withMetavar("N"),
      Flag.withDescription(`Receipts at most, the newest of all; ${defaultReceipts} if absent`),
      Flag.withDefault(defaultReceipts),
    ),
  },
  Effect.fn(function* ({ org, since, json, csv, receipts, limit }) {
    if (json && csv) {
      const error = new CliError.ValidationError({ message: "--json and --csv exclude each other" })
      return yield* new CliError.ShowHelp({ commandPath: ["edgewise", "usage"], errors: [error] })
    }
    const { id } = yield* (yield* Accounts).showOrg(org)
    const ledger = yield* UsageLedger
    const sinceMs = Option.getOrElse(since, () => 0)
    const about = { org, since: Option.isSome(since) ? isoTime(sinceMs) : null }
    if (receipts) {
      const found = yield* ledger.receipts(id, sinceMs, limit)
      const total = formatUsd(totalMicroDollars(found))
      const printing = { head: receiptHeading, rows: receiptDocument(found), name: "receipts", total }
      return yield* printUsage(printing, about, { json, csv })
    }
    const rows = yield* ledger.usage(id, sinceMs)
    const total = formatUsd(totalMicroDollars(rows))
    yield* printUsage({ head: heading, rows: usageDocument(rows), name: "usage", total }, about, {
      json,
      csv,
    })
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(Command.withDescription("Metered usage of an organization and its price"))

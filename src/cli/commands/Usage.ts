// `edgewise usage`: metered usage and its price, as a table, one JSON document or CSV. Only reads the store.

import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { formatUsd } from "#domain/models/Money.ts"
import { type ModelUsage, totalMicroDollars, type UsageReceipt } from "#domain/models/Usage.ts"
import { table } from "#domain/process/Columns.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { storeLayerFromEnvironment } from "#store/Store.ts"
import {
  integerFlag,
  isoTime,
  jsonFlag,
  orgFlag,
  printJson,
  switchFlag,
  wrongUsage,
} from "../shared/Output.ts"

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

/** Ids, names, times and kinds contain neither commas nor quotes, so no field needs quoting. */
const csvOf = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, ...rows].map((line) => line.join(",")).join("\n")

interface Printing {
  readonly head: ReadonlyArray<string>
  readonly rows: ReadonlyArray<object>
  /** Key of the rows in the JSON document. */
  readonly name: string
  readonly total: string
}

/** Prints the result in the requested form. */
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

/** Default number of printed receipts. A guess: suited to a file rather than a screen. */
const defaultReceipts = 1_000
/** All receipts are read and printed as one text. */
const maxReceipts = 1_000_000

/** Accepts a day (UTC) or an exact time with its offset, both unambiguous in every time zone. */
const parseSince = (text: string): Option.Option<number> => {
  const accepted = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
  // Date.parse reads February 31 as March 3. Therefore the parsed day must give the same text again.
  const day = text.slice(0, 10)
  const dayMs = accepted ? Date.parse(day) : Number.NaN
  const ms = Date.parse(text)
  if (Number.isNaN(dayMs) || Number.isNaN(ms) || isoTime(dayMs).slice(0, 10) !== day) return Option.none()
  return Option.some(ms)
}

export const usage = Command.make(
  "usage",
  {
    org: orgFlag.pipe(
      Flag.withDescription("Organization; default: the only one, where there is no other"),
      Flag.optional,
    ),
    since: Flag.String("since").pipe(
      Flag.filterMap(parseSince, () => "a date like 2026-01-31 or a time like 2026-01-31T12:00:00Z"),
      Flag.withMetavar("DATE"),
      Flag.withDescription("Only usage from this day (UTC) or time on; default: all"),
      Flag.optional,
    ),
    json: jsonFlag,
    csv: switchFlag("csv", "Print comma-separated values"),
    receipts: switchFlag(
      "receipts",
      "One line per priced answer, with the id of its X-Receipt-Id, newest first",
    ),
    deleted: switchFlag("deleted", "Sums of all organizations that were deleted, together"),
    limit: integerFlag(
      "limit",
      1,
      maxReceipts,
      "RECEIPTS",
      `Number of receipts at most, newest first; default: ${defaultReceipts}`,
    ).pipe(Flag.withDefault(defaultReceipts)),
  },
  Effect.fn(function* ({ org, since, json, csv, receipts, limit, deleted }) {
    if (json && csv) {
      return yield* wrongUsage(["usage"], "--json and --csv exclude each other")
    }
    if (deleted) {
      if (Option.isSome(org) || Option.isSome(since) || receipts) {
        return yield* wrongUsage(["usage"], "--deleted excludes --org, --since and --receipts")
      }
      const sums = yield* (yield* UsageLedger).deletedUsage
      const total = formatUsd(totalMicroDollars(sums))
      const about = { org: null, since: null }
      return yield* printUsage({ head: heading, rows: usageDocument(sums), name: "usage", total }, about, {
        json,
        csv,
      })
    }
    const accounts = yield* Accounts
    const { id, name } = yield* Option.match(org, {
      onNone: () => accounts.onlyOrg,
      onSome: accounts.showOrg,
    })
    const ledger = yield* UsageLedger
    const sinceMs = Option.getOrElse(since, () => 0)
    const about = { org: name, since: Option.isSome(since) ? isoTime(sinceMs) : null }
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

// A file for receipts while the shared database is away: they survive the end of the node, and are written to the database once, because
// a receipt's id is its primary key. One receipt a line, as JSON.
import { appendFile, type FileHandle, open, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Schema, type Scope } from "effect"
import { ModelKind } from "#domain/models/ModelEntry.ts"
import { problemOf } from "../files/DataDir.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import type { Receipt } from "./LedgerRows.ts"

/** Size of the file from which nothing new is started, bytes. A receipt takes about 300: a minute of 2,000 a second. */
const defaultMaxBytes = 32 * 1024 * 1024

/** What runs already may add so much more, as a part of that size. A guess. */
const reserve = 0.25

export interface SpoolOptions {
  readonly dataDir: string
  /** False: what an earlier start has left is written, and nothing is added. */
  readonly isUsed: boolean
  readonly maxBytes?: number
}

/** Undefined: the store is not shared. */
export const SpoolOptions = Context.Reference<SpoolOptions | undefined>("edgewise/store/SpoolOptions", {
  defaultValue: () => undefined,
})

export const spoolFileIn = (dataDir: string): string => join(dataDir, "unwritten-receipts.jsonl")

/** Receipts too old to be written by themselves: whether they were written before can no longer be known. */
export const expiredFileIn = (dataDir: string): string => join(dataDir, "expired-receipts.jsonl")

const count = Schema.Finite.check(Schema.isInt())
const Line = Schema.Struct({
  receiptId: Schema.NonEmptyString,
  atMs: count,
  orgId: Schema.String,
  userId: Schema.String,
  keyId: Schema.String,
  model: Schema.String,
  usage: Schema.Struct({
    kind: ModelKind,
    inputTokens: count,
    outputTokens: count,
    audioMs: count,
  }),
  microDollars: count,
})
const decodeLine = Schema.decodeUnknownExit(Schema.fromJsonString(Line))

export interface ReceiptSpool {
  /** What an earlier start has left. */
  readonly left: ReadonlyArray<Receipt>
  /** No new work may be started. */
  readonly isFull: () => boolean
  /** No receipt is taken any more. */
  readonly isOver: () => boolean
  /** Adds receipts and syncs them. Fails if the disk refuses. */
  readonly add: (receipts: ReadonlyArray<Receipt>) => Effect.Effect<void, StoreUnavailable>
  /** Adds receipts to the file of those that are too old, for the operator, and syncs it. */
  readonly setAside: (receipts: ReadonlyArray<Receipt>) => Effect.Effect<void, StoreUnavailable>
  /** Empties the file, once all that it holds is in the database or set aside. */
  readonly clear: Effect.Effect<void, StoreUnavailable>
}

/** A line that was cut off must not swallow the next one. */
const linesOf = (receipts: ReadonlyArray<Receipt>): string =>
  `\n${receipts.map((receipt) => JSON.stringify(receipt)).join("\n")}\n`

export const openSpool = Effect.fnUntraced(function* (
  options: SpoolOptions,
): Effect.fn.Return<ReceiptSpool, StoreUnavailable, Scope.Scope> {
  const place = spoolFileIn(options.dataDir)
  const maxBytes = options.maxBytes ?? defaultMaxBytes
  const io = <A>(work: () => Promise<A>) =>
    Effect.tryPromise({
      try: work,
      catch: (cause) => new StoreUnavailable({ place, problem: problemOf(cause) }),
    })
  const file: FileHandle = yield* Effect.acquireRelease(
    io(() => open(place, "a", 0o600)),
    (handle) => Effect.promise(() => handle.close().catch(() => {})),
  )
  const text = yield* io(() => readFile(place, "utf8"))
  const left: Array<Receipt> = []
  let broken = 0
  for (const line of text.split("\n")) {
    if (line === "") continue
    const exit = decodeLine(line)
    if (exit._tag === "Success") left.push(exit.value)
    else broken++
  }
  if (broken > 0) {
    // The last line, if the machine lost power while it was written.
    yield* Effect.logWarning("lines of the file of unwritten receipts cannot be read").pipe(
      Effect.annotateLogs({ place, lines: broken }),
    )
  }
  let bytes = Buffer.byteLength(text)

  return {
    left,
    isFull: () => bytes >= maxBytes,
    isOver: () => bytes >= maxBytes * (1 + reserve),
    add: (receipts) =>
      io(async () => {
        const lines = Buffer.from(linesOf(receipts))
        bytes += lines.length
        await file.appendFile(lines)
        await file.datasync()
      }),
    setAside: (receipts) => {
      const expired = expiredFileIn(options.dataDir)
      const add = Effect.tryPromise({
        try: () => appendFile(expired, linesOf(receipts), { mode: 0o600, flush: true }),
        catch: (cause) => new StoreUnavailable({ place: expired, problem: problemOf(cause) }),
      })
      return Effect.andThen(
        add,
        Effect.logError("receipts of an outage are too old and were not charged").pipe(
          Effect.annotateLogs({ place: expired, receipts: receipts.length }),
        ),
      )
    },
    clear: io(async () => {
      if (bytes === 0) return
      await file.truncate(0)
      await file.datasync()
      bytes = 0
    }),
  }
})

// Writes the receipts of whole days (UTC) to files, one a day. A day counts as exported when its file is on the disk under its name.
import { link, mkdir, open, unlink } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { syncFile } from "../files/Durable.ts"
import type { StoreUnavailable } from "../files/StoreErrors.ts"
import { dayName } from "../ledger/ReceiptDays.ts"
import { type ExportedReceipt, ReceiptExports } from "../ledger/ReceiptExports.ts"
import { type BackupFailed, noSizeSignal, step } from "./BackupFiles.ts"

export interface ExportedDay {
  readonly day: string
  readonly file: string
  readonly receipts: number
}

/** A day may get further receipts while it is read, from nodes that come back. It is then read again, so often at most. A guess. */
const mostReadings = 5

const lineOf = (receipt: ExportedReceipt): string =>
  `${JSON.stringify({
    receipt_id: receipt.receipt_id,
    at: new Date(Number(receipt.at_ms)).toISOString(),
    org: receipt.org,
    org_id: receipt.org_id,
    user: receipt.user_name,
    key_id: receipt.key_id,
    model: receipt.model,
    kind: receipt.kind,
    input_tokens: Number(receipt.input_tokens),
    output_tokens: Number(receipt.output_tokens),
    audio_ms: Number(receipt.audio_ms),
    micro_dollars: Number(receipt.micro_dollars),
  })}\n`

/** Gives the draft the first name of the day that is free: a day that got receipts after its export has several files. */
const nameDraft = async (draft: string, folder: string, day: string): Promise<string> => {
  for (let nth = 1; ; nth++) {
    const file = join(folder, `receipts-${day}${nth === 1 ? "" : `.${nth}`}.jsonl`)
    try {
      await link(draft, file)
      return file
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause
    }
  }
}

/** Writes the file of a day. Undefined if the day has got another receipt meanwhile; then there is no file. */
const exportDay = (folder: string, day: number) =>
  Effect.gen(function* () {
    const { begin, complete, read } = yield* ReceiptExports
    const begun = yield* begin(day)
    const draft = join(folder, `.receipts-${dayName(day)}.${begun.id}.partial`)
    const handle = yield* Effect.acquireRelease(
      step(folder, () => open(draft, "wx", 0o600)),
      (opened) =>
        Effect.promise(async () => {
          await opened.close().catch(() => {})
          await unlink(draft).catch(() => {})
        }),
    )
    const receipts = yield* read(day, (some) =>
      step(folder, () => handle.appendFile(some.map(lineOf).join(""))),
    )
    yield* step(folder, () => handle.sync())
    const file = yield* step(folder, async () => {
      const named = await nameDraft(draft, folder, dayName(day))
      await syncFile(named)
      return named
    })
    if (yield* complete(begun, receipts)) return { day: dayName(day), file, receipts }
    yield* step(folder, () => unlink(file))
    return undefined
  }).pipe(Effect.scoped)

/** Writes a file for each day that is due, and tells `made` of each. The folder is made if it is missing. */
export const exportReceipts = <R>(
  folder: string,
  made: (of: ExportedDay) => Effect.Effect<void, never, R>,
): Effect.Effect<number, BackupFailed | StoreUnavailable, R | ReceiptExports> =>
  Effect.gen(function* () {
    yield* noSizeSignal
    yield* step(folder, () => mkdir(folder, { recursive: true, mode: 0o700 }))
    const days = yield* (yield* ReceiptExports).due
    for (const day of days) {
      for (let reading = 1; reading <= mostReadings; reading++) {
        const exported = yield* exportDay(folder, day)
        if (exported === undefined) continue
        yield* made(exported)
        break
      }
    }
    return days.length
  }).pipe(Effect.scoped)

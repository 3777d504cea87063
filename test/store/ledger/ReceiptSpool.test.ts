// The file for receipts while the shared database is away: what is found in it after any end of the node, and its bounds.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { textUsage } from "#domain/models/Usage.ts"
import type { Receipt } from "#store/ledger/LedgerRows.ts"
import { openSpool, spoolFileIn } from "#store/ledger/ReceiptSpool.ts"
import { tempDir } from "../TempDir.ts"

const receipt = (nth: number): Receipt => ({
  receiptId: `rcpt_${nth}`,
  atMs: 1_000 + nth,
  orgId: "org",
  userId: "user",
  keyId: "key",
  model: "llm",
  usage: textUsage(1, nth),
  microDollars: nth,
})

const leftIn = (dataDir: string) =>
  Effect.scoped(Effect.map(openSpool({ dataDir, isUsed: true }), ({ left }) => left))

it.effect("gives back what was added, until it is emptied", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    yield* Effect.scoped(
      Effect.gen(function* () {
        const spool = yield* openSpool({ dataDir, isUsed: true })
        expect(spool.left).toEqual([])
        yield* spool.add([receipt(1), receipt(2)])
        yield* spool.add([receipt(3)])
      }),
    )
    expect(yield* leftIn(dataDir)).toEqual([receipt(1), receipt(2), receipt(3)])
    yield* Effect.scoped(
      Effect.gen(function* () {
        const spool = yield* openSpool({ dataDir, isUsed: true })
        yield* spool.clear
        yield* spool.add([receipt(4)])
      }),
    )
    expect(yield* leftIn(dataDir)).toEqual([receipt(4)])
  }).pipe(Effect.scoped),
)

it.effect("loses the line that was cut off, and no other one", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const place = spoolFileIn(dataDir)
    const add = (...nths: ReadonlyArray<number>) =>
      Effect.scoped(
        Effect.flatMap(openSpool({ dataDir, isUsed: true }), (spool) => spool.add(nths.map(receipt))),
      )
    yield* add(1, 2)
    writeFileSync(place, readFileSync(place, "utf8").trimEnd().slice(0, -5))
    yield* add(3)
    appendFileSync(place, '{"receiptId":"rcpt_4","atMs":"never"}\n')
    expect((yield* leftIn(dataDir)).map(({ receiptId }) => receiptId)).toEqual(["rcpt_1", "rcpt_3"])
  }).pipe(Effect.scoped),
)

it.effect("is full at its size, and takes a quarter more of what runs already", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const size = Buffer.byteLength(`\n${JSON.stringify(receipt(1))}\n`)
    const spool = yield* openSpool({ dataDir, isUsed: true, maxBytes: 4 * size })
    for (let nth = 1; nth <= 3; nth++) yield* spool.add([receipt(nth)])
    expect([spool.isFull(), spool.isOver()]).toEqual([false, false])
    yield* spool.add([receipt(4)])
    expect([spool.isFull(), spool.isOver()]).toEqual([true, false])
    yield* spool.add([receipt(5)])
    expect([spool.isFull(), spool.isOver()]).toEqual([true, true])
    yield* spool.clear
    expect([spool.isFull(), spool.isOver(), readFileSync(spoolFileIn(dataDir), "utf8")]).toEqual([
      false,
      false,
      "",
    ])
  }).pipe(Effect.scoped),
)

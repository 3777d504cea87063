// `edgewise receipts export`: its files, what it prints, and what is left where it cannot write.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Console, Effect, Layer } from "effect"
import { afterAll, expect, it } from "vitest"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { textUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { makeLedgerRows } from "#store/ledger/LedgerRows.ts"
import { ReceiptExports } from "#store/ledger/ReceiptExports.ts"
import { type Store, storeLayer } from "#store/Store.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"
import { edgewise } from "../edgewise.ts"

const dir = temporaryDir()
afterAll(() => dir.remove())
const dataDir = join(dir.path, "data")
const out = join(dir.path, "out")

const run = async (...args: ReadonlyArray<string>) => {
  const written = { stdout: "", stderr: "" }
  const recorder: Console.Console = Object.assign(Object.create(console), {
    log: (...parts: ReadonlyArray<unknown>) => {
      written.stdout += `${parts.join(" ")}\n`
    },
    error: (...parts: ReadonlyArray<unknown>) => {
      written.stderr += `${parts.join(" ")}\n`
    },
  })
  const env = { EDGEWISE_DATA_DIR: dataDir }
  const status = await runCommandLine(edgewise, ["receipts", "export", ...args], "0.0.0").pipe(
    Effect.provideService(Console.Console, recorder),
    Effect.provide([NodeServices.layer, ConfigProvider.layer(ConfigProvider.fromEnv({ env }))]),
    Effect.runPromise,
  )
  return { status, ...written }
}

const inStore = <A, E>(effect: Effect.Effect<A, E, Store>) =>
  Effect.runPromise(Effect.provide(effect, Layer.fresh(storeLayer({ dataDir }))))

const write = (id: string, at: string) =>
  inStore(
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const { orgId } = yield* Effect.orElseSucceed(
        Effect.map(accounts.showOrg("acme"), (org) => ({ orgId: org.id })),
        () => ({ orgId: "" }),
      )
      const known =
        orgId === "" ? (yield* accounts.createOrg({ name: "acme", paymentMethod: true })).id : orgId
      const usage = textUsage(3, 4)
      const receipt = {
        receiptId: id,
        atMs: Date.parse(at),
        orgId: known,
        userId: "u",
        keyId: "k",
        model: "llm",
      }
      yield* (yield* makeLedgerRows).write([{ ...receipt, usage, microDollars: 5 }])
    }),
  )

const lines = (name: string) =>
  readFileSync(join(out, name), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>)

it("writes a file for each day once, and another one for what came late", async () => {
  expect(await run(out)).toEqual({
    status: 0,
    stdout: "no day is due: a day is exported once, when it ended at least a day ago (UTC)\n",
    stderr: "",
  })
  await write("rcpt_a", "2026-01-31T23:59:59.999Z")
  await write("rcpt_b", "2026-02-01T00:00:00.000Z")
  await write("rcpt_c", "2026-02-01T10:00:00.000Z")
  const [first, second] = [join(out, "receipts-2026-01-31.jsonl"), join(out, "receipts-2026-02-01.jsonl")]
  expect(await run(out)).toEqual({
    status: 0,
    stdout: `${first}: 1 receipts\n${second}: 2 receipts\n`,
    stderr: "",
  })
  expect(statSync(first).mode & 0o777).toBe(0o600)
  expect(lines("receipts-2026-01-31.jsonl")).toEqual([
    {
      receipt_id: "rcpt_a",
      at: "2026-01-31T23:59:59.999Z",
      org: "acme",
      org_id: expect.stringMatching(/^org_/),
      user: null,
      key_id: "k",
      model: "llm",
      kind: "text",
      input_tokens: 3,
      output_tokens: 4,
      audio_ms: 0,
      micro_dollars: 5,
    },
  ])
  expect(JSON.parse((await run(out, "--json")).stdout)).toEqual({ days: [], left: 0 })
  await write("rcpt_d", "2026-02-01T11:00:00.000Z")
  const third = join(out, "receipts-2026-02-01.2.jsonl")
  expect(JSON.parse((await run(out, "--json")).stdout)).toEqual({
    days: [{ day: "2026-02-01", file: third, receipts: 3 }],
    left: 0,
  })
  expect(lines("receipts-2026-02-01.2.jsonl").map(({ receipt_id }) => receipt_id)).toEqual([
    "rcpt_b",
    "rcpt_c",
    "rcpt_d",
  ])
  expect(readdirSync(out).sort()).toEqual([
    "receipts-2026-01-31.jsonl",
    "receipts-2026-02-01.2.jsonl",
    "receipts-2026-02-01.jsonl",
  ])
})

it("says in one line why it cannot write, and then nothing counts as exported", async () => {
  await write("rcpt_e", "2026-02-02T00:00:00.000Z")
  const file = join(dir.path, "a-file")
  writeFileSync(file, "")
  const failed = await run(join(file, "below"))
  expect(failed).toMatchObject({ status: 1, stdout: "" })
  expect(failed.stderr).toBe(`${join(file, "below")}: a part of this path is a file, not a folder\n`)
  expect(await inStore(Effect.flatMap(ReceiptExports, ({ due }) => due))).toEqual([Date.parse("2026-02-02")])
  expect(existsSync(join(out, "receipts-2026-02-02.jsonl"))).toBe(false)
})

// The account commands as a script uses them: exit status and both outputs. Most run as real processes;
// the long table of mistakes runs in this process, through the same entry point.
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Console, Effect, Exit, Layer, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { isApiKey } from "#domain/access/ApiKey.ts"
import { audioUsage, textUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { type Store, storeLayer } from "#store/Store.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { compiledEnvironment, mainFile } from "../../support/process/CompiledCode.ts"
import { edgewise as commands } from "../edgewise.ts"

const home = mkdtempSync(join(tmpdir(), "edgewise-cli-"))
afterAll(() => rmSync(home, { recursive: true, force: true }))

interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

const edgewise = (
  dataDir: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  /** The command of the shell in which the program, `"$@"`, runs. */
  shell = (command: string) => command,
): Promise<Ran> =>
  new Promise((resolve) => {
    execFile(
      "sh",
      [
        "-c",
        shell('"$@"'),
        "sh",
        process.execPath,
        "--disable-warning=ExperimentalWarning",
        mainFile,
        ...args,
      ],
      {
        env: {
          ...process.env,
          ...compiledEnvironment(),
          EDGEWISE_DATABASE_URL: "",
          EDGEWISE_DATA_DIR: dataDir,
          ...env,
        },
        maxBuffer: 2 ** 24,
      },
      (error, stdout, stderr) => {
        const status = error === null ? 0 : Number(error.code)
        resolve({ status, stdout, stderr })
      },
    )
  })

/** The same without a process: what would have been written to either output. */
const here = async (dataDir: string, args: ReadonlyArray<string>): Promise<Ran> => {
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
  const status = await runCommandLine(commands, args, "0.0.0").pipe(
    Effect.provideService(Console.Console, recorder),
    Effect.provide([NodeServices.layer, ConfigProvider.layer(ConfigProvider.fromEnv({ env }))]),
    Effect.runPromise,
  )
  return { status, ...written }
}

/** Runs with `--json`: standard output is exactly one document, standard error is empty. */
const jsonOf = async (run: typeof here, dataDir: string, args: ReadonlyArray<string>): Promise<unknown> => {
  const ran = await run(dataDir, [...args, "--json"])
  expect(ran).toMatchObject({ status: 0, stderr: "" })
  return JSON.parse(ran.stdout)
}

const json = (dataDir: string, ...args: ReadonlyArray<string>) => jsonOf(here, dataDir, args)
const jsonOfProcess = (dataDir: string, ...args: ReadonlyArray<string>) => jsonOf(edgewise, dataDir, args)

const isoTime = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/)

describe("on an empty data directory", () => {
  const dir = join(home, "empty")

  it("goes from a first key to its end", async () => {
    const made = (await jsonOfProcess(dir, "keys", "create", "--org", "acme")) as Record<string, string>
    expect(made).toEqual({
      api_key: expect.stringMatching(/^svc_/),
      key_id: expect.stringMatching(/^key_/),
      org: "acme",
      user: "default",
      scope: "read-write",
    })
    expect(statSync(dir).mode & 0o777).toBe(0o700)
    const operator = (await json(
      dir,
      "keys",
      "create",
      "--org",
      "acme",
      "--scope",
      "superadmin",
      "--user",
      "ops",
    )) as Record<string, string>
    expect(operator).toMatchObject({ scope: "superadmin", user: "ops" })

    expect(await json(dir, "orgs", "credit", "acme", "0.000001")).toMatchObject({ credits_usd: "5.000001" })
    expect(await json(dir, "orgs", "show", "acme")).toEqual({
      org: "acme",
      org_id: expect.stringMatching(/^org_/),
      credits_usd: "5.000001",
      payment_method: false,
      created_at: isoTime,
      leased: [],
      usage: [],
      total_usd: "0.00",
    })

    expect(await json(dir, "keys", "revoke", made.key_id!)).toEqual({
      key_id: made.key_id,
      revoked_at: isoTime,
    })
    expect(await jsonOfProcess(dir, "keys", "list", "--org", "acme")).toEqual({
      org: "acme",
      keys: [
        {
          key_id: made.key_id,
          prefix: made.api_key!.slice(0, 12),
          user: "default",
          scope: "read-write",
          created_at: isoTime,
          revoked_at: isoTime,
        },
        expect.objectContaining({ key_id: operator.key_id, revoked_at: null }),
      ],
    })
  })

  it("prints a key alone, and tables for people", async () => {
    const key = await here(dir, ["keys", "create", "--org", "people"])
    expect(key.status).toBe(0)
    expect(isApiKey(key.stdout.trim())).toBe(true)
    expect(key.stderr).toMatch(/^key_\w+, read-write, user default of people\.[^\n]*\n$/)
    const list = await here(dir, ["keys", "list", "--org", "people"])
    expect(list.stdout.split("\n")[0]).toMatch(/^key_id +prefix +user +scope +created_at +revoked_at$/)
    expect(list.stdout).not.toContain(key.stdout.trim())
    const made = await here(dir, ["orgs", "create", "rich", "--credits", "12.5", "--payment-method"])
    expect(made).toEqual({ status: 0, stdout: "rich: 12.50 USD of credits, payment method\n", stderr: "" })
  })
})

describe("usage without --org", () => {
  const dir = join(home, "one")

  it("is that of the only organization; with none or several it says what to do", async () => {
    const none = await here(dir, ["usage"])
    expect([none.status, none.stderr]).toEqual([
      1,
      "there is no organization yet; edgewise keys create --org NAME makes one with its first key\n",
    ])
    await here(dir, ["orgs", "create", "acme"])
    expect(await json(dir, "usage")).toMatchObject({ org: "acme", usage: [], total_usd: "0.00" })
    await here(dir, ["orgs", "create", "other"])
    const several = await here(dir, ["usage"])
    expect([several.status, several.stdout, several.stderr]).toEqual([
      1,
      "",
      "--org is needed, because there are several organizations: acme, other\n",
    ])
  })
})

describe("what goes wrong", () => {
  const dir = join(home, "wrong")
  const failures: ReadonlyArray<readonly [status: number, line: RegExp, args: ReadonlyArray<string>]> = [
    [1, /^no organization unknown$/, ["orgs", "show", "unknown", "--json"]],
    [1, /^no organization unknown$/, ["usage", "--org", "unknown", "--json"]],
    [1, /^no organization unknown$/, ["orgs", "credit", "unknown", "1"]],
    [1, /^a credit must be more than 0 USD/, ["orgs", "credit", "unknown", "0"]],
    [1, /^no key "key_none"$/, ["keys", "revoke", "key_none"]],
    [2, /NAME.*1 to 64 letters/, ["orgs", "create", "no spaces"]],
    [2, /NAME.*1 to 64 letters/, ["orgs", "create", "x".repeat(65)]],
    [2, /--user.*1 to 64 letters/, ["keys", "create", "--org", "a", "--user", "ä"]],
    [2, /USD/, ["orgs", "create", "a", "--credits", "1e3"]],
    [2, /USD/, ["orgs", "credit", "a", "five"]],
    [2, /--scope/, ["keys", "create", "--org", "a", "--scope", "root"]],
    [2, /--org/, ["keys", "create", "--json"]],
    [2, /--since/, ["usage", "--org", "a", "--since", "2026-02-31"]],
    [2, /exclude each other/, ["usage", "--org", "a", "--json", "--csv"]],
    [2, /limit/, ["usage", "--org", "a", "--receipts", "--limit", "0"]],
    [2, /--colour/, ["usage", "--org", "a", "--colour"]],
    [2, /creat/, ["orgs", "creat", "a"]],
  ]

  it.each(failures)("exit status %d, one line like %s", async (status, line, args) => {
    const ran = await here(dir, args)
    expect(ran.status).toBe(status)
    expect(ran.stdout).toBe("")
    expect(ran.stderr).toMatch(/^[^\n]+\n$/)
    expect(ran.stderr.trim()).toMatch(line)
  })

  it("leaves a real process with the same status and the same line", async () => {
    const dir = join(home, "process")
    for (const args of [
      ["orgs", "show", "unknown", "--json"],
      ["keys", "list", "--json"],
    ]) {
      expect(await edgewise(dir, args)).toEqual(await here(dir, args))
    }
  })

  it("names the setting or the place at fault", async () => {
    const url = (text: string) =>
      edgewise(dir, ["orgs", "show", "a", "--json"], { EDGEWISE_DATABASE_URL: text })
    expect(await url("mysql://me:secret@db/edgewise")).toEqual({
      status: 2,
      stdout: "",
      stderr:
        'EDGEWISE_DATABASE_URL: "mysql://…@db/edgewise" is not allowed; allowed is ' +
        "postgres://USER:PASSWORD@HOST:PORT/DATABASE, with ?sslmode=require for TLS; several hosts as HOST:PORT,HOST:PORT\n",
    })
    // Port 1 of this machine: nothing listens there.
    expect(await url("postgres://me:secret@127.0.0.1:1/edgewise")).toEqual({
      status: 1,
      stdout: "",
      stderr: "postgres://127.0.0.1:1/edgewise: connect ECONNREFUSED 127.0.0.1:1\n",
    })
    const file = await edgewise(mainFile, ["orgs", "show", "a", "--json"])
    expect(file).toMatchObject({ status: 1, stdout: "" })
    expect(file.stderr).toMatch(/^[^\n]*main\.js: [^\n]+\n$/)
  })
})

describe("while a node runs on the store", () => {
  const dir = join(home, "node")
  const scope = Scope.makeUnsafe()
  let run: <A, E>(effect: Effect.Effect<A, E, Store>) => Promise<A>

  beforeAll(async () => {
    const node = await Effect.runPromise(Layer.buildWithScope(storeLayer({ dataDir: dir }), scope))
    run = (effect) => Effect.runPromise(Effect.provide(effect, node))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  /** Reads 64 KiB at a time, with a pause after each. */
  const slowly =
    "node -e 'process.stdin.on(\"data\",(d)=>{process.stdout.write(d);process.stdin.pause();setTimeout(()=>process.stdin.resume(),2)})'"

  it("writes documents of some MB whole into a pipe that is read slowly", async () => {
    const key = (await json(dir, "keys", "create", "--org", "busy")) as Record<string, string>
    const microDollars = 5
    const receipts = 8_000
    await run(
      Effect.gen(function* () {
        const principal = yield* (yield* Accounts).authenticate(key.api_key!)
        const ledger = yield* UsageLedger
        for (let i = 0; i < receipts; i++) {
          const reservation = yield* ledger.reserve(principal, microDollars)
          yield* ledger.settle(reservation, { model: "llm", usage: textUsage(1000, 500), microDollars })
        }
        yield* ledger.flush
      }).pipe(Effect.scoped),
    )
    const args = ["usage", "--org", "busy", "--receipts", "--limit", String(receipts), "--json"]
    const piped = await edgewise(dir, args, {}, (command) => `${command} | ${slowly}`)
    expect(piped.stdout.length).toBeGreaterThan(2_000_000)
    expect((JSON.parse(piped.stdout) as { receipts: ReadonlyArray<unknown> }).receipts).toHaveLength(receipts)
    // A reader that has enough is no failure.
    const headed = await edgewise(
      dir,
      args,
      {},
      (command) => `{ ${command}; echo "status $?" >&2; } | head -c 1`,
    )
    expect(headed).toEqual({ status: 0, stdout: "{", stderr: "status 0\n" })
  })

  it("makes keys the node takes, credits it spends, and reads what it metered", async () => {
    const key = (await json(dir, "keys", "create", "--org", "acme")) as Record<string, string>
    const settled = (microDollars: number, usage = textUsage(1000, 500), model = "llm") =>
      Effect.gen(function* () {
        const principal = yield* (yield* Accounts).authenticate(key.api_key!)
        const ledger = yield* UsageLedger
        yield* ledger.settle(yield* ledger.reserve(principal, microDollars), { model, usage, microDollars })
        yield* ledger.flush
      }).pipe(Effect.scoped)
    await run(settled(575))
    // Receipts of one millisecond have no order.
    const settledAtMs = Date.now()
    await eventually(() => Date.now() > settledAtMs, "the next millisecond")
    await run(settled(4000, audioUsage("transcription", 60_500 * 16, 16_000), "stt"))

    const usage = await jsonOfProcess(dir, "usage", "--org", "acme", "--since", "2000-01-01")
    expect(usage).toEqual({
      org: "acme",
      since: "2000-01-01T00:00:00.000Z",
      usage: [
        {
          model: "stt",
          kind: "transcription",
          requests: 1,
          input_tokens: 0,
          output_tokens: 0,
          audio_seconds: 60.5,
          usd: "0.004",
        },
        {
          model: "llm",
          kind: "text",
          requests: 1,
          input_tokens: 1000,
          output_tokens: 500,
          audio_seconds: 0,
          usd: "0.000575",
        },
      ],
      total_usd: "0.004575",
    })
    expect(await json(dir, "usage", "--org", "acme", "--since", "2999-01-01")).toMatchObject({ usage: [] })
    expect(await json(dir, "orgs", "show", "acme")).toMatchObject({ credits_usd: "4.995425" })
    const csv = await here(dir, ["usage", "--org", "acme", "--csv"])
    expect(csv.stdout.split("\n")).toEqual([
      "model,kind,requests,input_tokens,output_tokens,audio_seconds,usd",
      "stt,transcription,1,0,0,60.5,0.004",
      "llm,text,1,1000,500,0,0.000575",
      "",
    ])

    const listed = (await json(dir, "usage", "--org", "acme", "--receipts")) as {
      readonly receipts: ReadonlyArray<Readonly<Record<string, unknown>>>
    }
    const about = { user: "default", key_id: key.key_id, at: expect.stringMatching(/^20\d\d-.*Z$/) }
    const receipt_id = expect.stringMatching(/^rcpt_[0-9a-f]{28}$/)
    // Two keys made in the same millisecond are ordered by their ids.
    const receipts = listed.receipts.toSorted((a, b) => (String(a.kind) < String(b.kind) ? 1 : -1))
    expect({ ...listed, receipts }).toEqual({
      org: "acme",
      since: null,
      receipts: [
        {
          receipt_id,
          ...about,
          model: "stt",
          kind: "transcription",
          input_tokens: 0,
          output_tokens: 0,
          audio_seconds: 60.5,
          usd: "0.004",
        },
        {
          receipt_id,
          ...about,
          model: "llm",
          kind: "text",
          input_tokens: 1000,
          output_tokens: 500,
          audio_seconds: 0,
          usd: "0.000575",
        },
      ],
      total_usd: "0.004575",
    })
    const newest = await here(dir, ["usage", "--org", "acme", "--receipts", "--csv", "--limit", "1"])
    const { at, receipt_id: id } = listed.receipts[0]!
    expect(newest.stdout).toBe(
      "receipt_id,at,user,key_id,model,kind,input_tokens,output_tokens,audio_seconds,usd\n" +
        `${id},${at},default,${key.key_id},stt,transcription,0,0,60.5,0.004\n`,
    )
    const printed = await here(dir, ["usage", "--org", "acme", "--receipts"])
    expect(printed.stdout).toMatch(/^receipt_id +at +user/)
    expect(printed.stdout).toMatch(/\ntotal 0\.004575 USD\n$/)
  })

  it("makes a revocation and new credits take effect on a running node", async () => {
    const key = (await json(dir, "keys", "create", "--org", "beta")) as Record<string, string>
    const principal = await run(Effect.flatMap(Accounts, (accounts) => accounts.authenticate(key.api_key!)))
    const reserve = Effect.scoped(
      Effect.flatMap(UsageLedger, (ledger) => ledger.reserve(principal, 6_000_000)),
    )
    expect(await run(Effect.flip(reserve))).toMatchObject({ _tag: "PaymentRequired" })
    await jsonOfProcess(dir, "orgs", "credit", "beta", "1")
    await jsonOfProcess(dir, "keys", "revoke", key.key_id!)
    // By the real clock of a busy machine, so the deadline is generous; the five seconds are held by test/store.
    await run(
      Effect.flatMap(Accounts, (accounts) => Effect.timeout(accounts.revoked(principal), "60 seconds")),
    )
    await run(
      Effect.timeout(Effect.eventually(Effect.tapError(reserve, () => Effect.sleep(50))), "60 seconds"),
    )
  })
})

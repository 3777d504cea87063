// The gateway process of a node crashes while it serves: by signals, a full heap, an exception that no code catches. The command
// that started it starts it again on the same port, its engines end, and money stays exact. bin/child.js in other
// respects is tested in test/pack/Restart.long.test.ts; `npm run bench -- restart` measures how long it takes.
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { headerOf, RawConnection, requestBytes } from "../support/clients/RawHttp.ts"
import { script } from "../support/nodes/FakeNode.ts"
import { type NodeProcess, startProcess } from "../support/nodes/NodeProcess.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually } from "../support/nodes/TestNode.ts"
import { childrenRunning, isRunning } from "../support/process/ChildProcesses.ts"
import { programFolder } from "../support/process/CompiledCode.ts"

/** In the node: a full heap at SIGUSR2, an exception at SIGPWR. */
const defects =
  'process.on("SIGUSR2", () => { const held = []; for (;;) held.push({}) }); process.on("SIGPWR", () => { throw new Error("a defect") })'

let node: NodeProcess
beforeAll(async () => {
  node = await startProcess({
    models: [fakeModel],
    main: join(programFolder, "bin", "edgewise.js"),
    env: {
      EDGEWISE_RESTART: "true",
      NODE_OPTIONS: `--max-old-space-size=192 --import=data:text/javascript,${encodeURIComponent(defects)}`,
    },
  })
})
afterAll(() => node.dispose())

const gateway = (): number | undefined => childrenRunning("src/main.", node.pid)[0]
const engines = (): ReadonlyArray<number> => childrenRunning("engineMain.", gateway() ?? -1)

interface Crash {
  readonly end: string
  readonly restarts: number
  readonly started_after_ms: number
  readonly last_lines: string
}

/** The log's records of crashes. */
const crashes = (): ReadonlyArray<Crash> =>
  node
    .stderr()
    .split("\n")
    .filter((line) => line.includes('"message":"node crashed and started again"'))
    .map((line) => JSON.parse(line).annotations)

/** How often the node has said that it serves. */
const greetings = (): number => node.stdout().split("try it:\n").length - 1

const statusOf = async (method: string, path: string, headers = {}, body = "") => {
  const connection = await RawConnection.open(node.port)
  try {
    await connection.send(requestBytes(method, path, headers, body))
    return await connection.response()
  } finally {
    connection.destroy()
  }
}

const complete = (key: string, tokens: number, tokenMs = 1) => {
  const body = JSON.stringify({ model: "fake", prompt: script({ tokens, tokenMs }), max_tokens: 500 })
  const headers = { authorization: `Bearer ${node.devKey}`, "idempotency-key": key }
  return { bytes: requestBytes("POST", "/v1/completions", headers, body), headers, body }
}

const ask = (key: string, tokens: number, tokenMs?: number) => {
  const { body, headers } = complete(key, tokens, tokenMs)
  return statusOf("POST", "/v1/completions", headers, body)
}

const receipts = () => {
  const db = new DatabaseSync(join(node.dataDir, "store.sqlite"), { readOnly: true })
  try {
    return db
      .prepare("SELECT receipt_id, output_tokens FROM usage_ledger")
      .all() as unknown as ReadonlyArray<{
      readonly receipt_id: string
      readonly output_tokens: number
    }>
  } finally {
    db.close()
  }
}

/** Ends the gateway by a signal, and waits until the next one serves. */
const crash = async (signal: NodeJS.Signals): Promise<void> => {
  const [pid, before, told] = [gateway(), greetings(), crashes().length]
  process.kill(pid!, signal)
  // The log comes by another pipe, which may be read later.
  const isBack = () => greetings() > before && crashes().length > told
  await eventually(isBack, `the node serves again after ${signal}, and says so`)
  expect(gateway()).not.toBe(pid)
}

describe("a gateway that crashes", () => {
  it("is started again on the same port, and the log says how it ended and what it printed", async () => {
    const ends = {
      SIGKILL: { end: "SIGKILL", prints: "" },
      SIGPWR: { end: "exit status 1", prints: "Error: a defect" },
      SIGSEGV: { end: "SIGSEGV", prints: "" },
      SIGUSR2: { end: "SIGABRT", prints: "heap" },
    }
    const times: Array<{ readonly beforeMs: number; readonly afterMs: number }> = []
    for (const [signal, { end, prints }] of Object.entries(ends)) {
      // The first answer of a process waits for its engine.
      expect((await ask(`before-${signal}`, 2)).status).toBe(200)
      const old = engines()
      expect(old).toHaveLength(1)
      const beforeMs = performance.now()
      await crash(signal as NodeJS.Signals)
      times.push({ beforeMs, afterMs: performance.now() })
      expect((await statusOf("GET", "/health")).status).toBe(200)
      expect(crashes().at(-1)).toMatchObject({ end, last_lines: expect.stringContaining(prints) })
      // An engine ends when its channel closes, also while its successor loads.
      await eventually(() => !old.some(isRunning), "the engine of the old gateway has ended")
    }
    // Those of the last minute, which on a busy machine are not all: at least those that were certainly in it, at most those that may have been.
    const minuteMs = 60_000
    for (const [at, { restarts }] of crashes().entries()) {
      const [{ afterMs, beforeMs }, all] = [times[at]!, times.slice(0, at + 1)]
      expect(restarts).toBeGreaterThanOrEqual(all.filter((each) => afterMs - each.beforeMs < minuteMs).length)
      expect(restarts).toBeLessThanOrEqual(all.filter((each) => beforeMs - each.afterMs < minuteMs).length)
    }
    expect(crashes().every(({ started_after_ms }) => started_after_ms >= 0)).toBe(true)
    console.log(`started again after ${crashes().map((each) => each.started_after_ms)} ms`)
  })

  it("closes its connections; retries with the same Idempotency-Key are charged once", async () => {
    const kept = await ask("kept", 3)
    expect(kept.status).toBe(200)
    const id = headerOf(kept, "x-receipt-id")
    await eventually(() => receipts().some((row) => row.receipt_id === id), "the receipt is written")
    const before = receipts().length

    const open = await RawConnection.open(node.port)
    // Of 80 s: it has not ended when the gateway crashes, however slow the machine is.
    await open.send(complete("open", 400, 200).bytes)
    await eventually(async () => {
      const { body } = await statusOf("GET", "/metrics")
      return /^edgewise_slots_busy\S* 1$/m.test(body.toString())
    }, "the request is running")
    await crash("SIGKILL")
    await expect(open.response()).rejects.toThrow()
    open.destroy()
    expect(receipts()).toHaveLength(before)

    const again = await ask("kept", 3)
    expect([again.status, again.body.toString()]).toEqual([200, kept.body.toString()])
    expect(headerOf(again, "x-receipt-id")).toBe(id)
    const retried = await ask("open", 400, 1)
    expect(retried.status).toBe(200)
    expect((await ask("open", 400, 1)).body).toEqual(retried.body)
    const retriedId = headerOf(retried, "x-receipt-id")
    await eventually(() => receipts().some((row) => row.receipt_id === retriedId), "its receipt is written")
    expect(receipts()).toHaveLength(before + 1)
  })

  it("is not started again when it was told to stop: it drains, and the status is 0", async () => {
    const count = crashes().length
    process.kill(gateway()!, "SIGTERM")
    expect(await node.exited).toEqual([0, null])
    expect(crashes()).toHaveLength(count)
    expect(node.stderr()).toContain('"message":"stopped"')
  })
})

describe("the command that started a node", () => {
  const start = () =>
    startProcess({
      models: [fakeModel],
      main: join(programFolder, "bin", "edgewise.js"),
      env: { EDGEWISE_RESTART: "true" },
    })

  it("passes SIGTERM on and ends with the node's status", async () => {
    const one = await start()
    try {
      one.signal("SIGTERM")
      expect(await one.exited).toEqual([0, null])
      expect(one.stderr()).toContain('"message":"draining"')
    } finally {
      await one.dispose()
    }
  })

  it("takes the node with it when it is killed: the node drains", async () => {
    const one = await start()
    const [pid] = childrenRunning("src/main.", one.pid)
    try {
      one.signal("SIGKILL")
      await eventually(() => !isRunning(pid!), "the node has ended")
      await eventually(() => one.stderr().includes('"message":"stopped"'), "its last line is read")
      expect(one.stderr()).toContain("the process that started the node has ended")
    } finally {
      await one.dispose()
    }
  })
})

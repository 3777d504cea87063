// kill -9 of the whole node at random points while it answers. Afterwards the ledger holds what was delivered, each answer
// once and at its price, except the answer in flight; and a retry after the restart gets the stored answer and is not
// charged. `npm run test:long` kills it more often than `npm test`; CHAOS_KILLS sets how often.
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, describe, expect, it } from "vitest"
import { costOf } from "#domain/models/Money.ts"
import { textUsage } from "#domain/models/Usage.ts"
import { headerOf, RawConnection, requestBytes } from "../support/clients/RawHttp.ts"
import { script } from "../support/nodes/FakeNode.ts"
import { type NodeProcess, startProcess } from "../support/nodes/NodeProcess.ts"
import { fakeModel, price } from "../support/nodes/TestCatalog.ts"
import { eventually, temporaryDir } from "../support/nodes/TestNode.ts"

const kills = Number(process.env.CHAOS_KILLS ?? 10)
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000)
/** Answers that a node gives after its first, at most, before it is killed. */
const mostAnswers = 8
/** Longest time from the last of them to the kill: an answer takes 46 to 70 ms, more on a busy machine. */
const longestAnswerMs = 80
/** Initial credit of the development key's organization, micro-dollars. */
const granted = 100_000_000

/** Park and Miller's generator: a run can be repeated by its seed. */
const random = (() => {
  let state = (seed % 2_147_483_646) + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
})()

const dir = temporaryDir()
afterAll(() => dir.remove())

const start = (): Promise<NodeProcess> =>
  startProcess({
    models: [fakeModel],
    env: { EDGEWISE_DATA_DIR: dir.path, EDGEWISE_LOG_LEVEL: "none" },
  })

interface Delivered {
  readonly key: string
  readonly tokens: number
  readonly stream: boolean
  readonly body: string
  receiptId: string | undefined
  answer: string | undefined
}

let sent = 0
const nextRequest = (): Delivered => {
  const tokens = 2 + Math.floor(random() * 4)
  const stream = random() < 0.5
  const prompt = script({ tokens, prefillMs: 30, tokenMs: 8 })
  const body = JSON.stringify({ model: "fake", prompt, max_tokens: 50, stream })
  return { key: `request-${sent++}`, tokens, stream, body, receiptId: undefined, answer: undefined }
}

const ask = async (node: NodeProcess, connection: RawConnection, request: Delivered): Promise<string> => {
  const headers = { authorization: `Bearer ${node.devKey}`, "idempotency-key": request.key }
  await connection.send(requestBytes("POST", "/v1/completions", headers, request.body))
  const response = await connection.response()
  if (response.status !== 200 || !response.complete) throw new Error(`${response.status}`)
  request.receiptId = headerOf(response, "x-receipt-id")
  return response.body.toString()
}

interface Row {
  readonly receipt_id: string
  readonly output_tokens: number
  readonly input_tokens: number
  readonly micro_dollars: number
}

const readStore = () => {
  const db = new DatabaseSync(join(dir.path, "store.sqlite"), { readOnly: true })
  try {
    const rows = db.prepare("SELECT * FROM usage_ledger").all() as unknown as ReadonlyArray<Row>
    const [org] = db.prepare("SELECT credits_micro_dollars AS credits FROM orgs").all()
    return { rows, credits: (org as { readonly credits: number }).credits }
  } finally {
    db.close()
  }
}

const isWritten = ({ receiptId }: Delivered): boolean =>
  readStore().rows.some(({ receipt_id }) => receipt_id === receiptId)

describe(`kill -9, ${kills} times (seed ${seed})`, () => {
  it("leaves a ledger of what was delivered", { timeout: (kills + 1) * 60_000 }, async () => {
    const delivered: Array<Delivered> = []
    /** Answers in flight to the ledger or the client when their node was killed. */
    const inFlight: Array<Delivered> = []
    for (let kill = 0; kill < kills; kill++) {
      const node = await start()
      const connection = await RawConnection.open(node.port)
      try {
        // The last answer of the previous node is not made, or charged, again.
        const before = readStore().rows.length
        const last = delivered.at(-1)
        if (last !== undefined) {
          const receiptId = last.receiptId
          expect(await ask(node, connection, last)).toBe(last.answer)
          expect(last.receiptId).toBe(receiptId)
          expect(readStore().rows.length).toBe(before)
        }
        // The first answer of a process waits for its engine, so the node is not killed before it.
        const first = nextRequest()
        first.answer = await ask(node, connection, first)
        delivered.push(first)
        const answers = Math.ceil(random() * mostAnswers)
        let isKilled = false
        const kill9 = () => {
          isKilled = true
          node.signal("SIGKILL")
        }
        for (let given = 0; ; given++) {
          if (given === answers) setTimeout(kill9, random() * longestAnswerMs)
          const request = nextRequest()
          inFlight.push(request)
          const answer = await ask(node, connection, request).catch((error: unknown) => {
            // Only the kill may end an answer; without it the node would be waited for in vain.
            if (!isKilled) throw error
          })
          if (answer === undefined) break
          inFlight.pop()
          request.answer = answer
          delivered.push(request)
          // Receipts are written together, every 20 ms: here two at most are not written yet.
          const before = delivered.at(-2)!
          await eventually(() => isKilled || isWritten(before), "the receipt before this one is written")
        }
        // Their receipts may not have been written yet.
        inFlight.push(...delivered.slice(-2))
        await node.exited
      } finally {
        connection.destroy()
        await node.dispose()
      }

      const { credits, rows } = readStore()
      const byId = new Map(rows.map((row) => [row.receipt_id, row]))
      const missing = delivered.filter(({ receiptId }) => !byId.has(receiptId!))
      expect(missing.filter((request) => !inFlight.includes(request))).toEqual([])
      for (const { receiptId, tokens } of delivered) {
        const row = byId.get(receiptId!)
        if (row === undefined) continue
        expect(row.output_tokens).toBe(tokens)
        expect(row.micro_dollars).toBe(costOf(price, textUsage(row.input_tokens, tokens)))
      }
      // At most one undelivered answer is charged for each kill.
      const strangers = rows.filter((row) => !delivered.some(({ receiptId }) => receiptId === row.receipt_id))
      expect(strangers.length).toBeLessThanOrEqual(kill + 1)
      expect(credits + rows.reduce((sum, row) => sum + row.micro_dollars, 0)).toBe(granted)
    }
    expect(delivered.length).toBeGreaterThanOrEqual(2 * kills)
  })
})

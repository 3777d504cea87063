// Transcription jobs of two nodes whose uploads lie in a folder that both have: any node does any job, goes on where the other stopped,
// and charges it once. A folder or a file that is not what it was ends in a clear error and no charge.
import { readdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import { poll, transcribe, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { needs } from "../../support/groups/Needs.ts"
import { SharedNodes } from "../../support/nodes/SharedNodes.ts"
import { eventually, type TestNode } from "../../support/nodes/TestNode.ts"

/** 2 s of audio take it 0.1 s. */
const slow = listener({ callMs: 100 }, { id: "slow-listener" })
/** Its jobs end only by being cancelled: a call takes it longer than any test. */
const stuck = listener({ callMs: 100_000 }, { id: "stuck-listener" })

describe("jobs with shared uploads", needs("postgresql"), () => {
  let shared: SharedNodes
  beforeAll(async () => {
    shared = await SharedNodes.start([listener(), slow, stuck], {
      beatMs: 200,
      sharedUploads: true,
      uploadRetryMs: 1_000,
    })
    // A server, two nodes and their engines: a long timeout for a busy machine.
  })
  afterAll(() => shared?.stop())

  const wav = (seconds: number, seed = 1) => wavOf(noise(seconds, seed)) as Uint8Array<ArrayBuffer>
  const submitTo = async (node: TestNode, key: string, file: Uint8Array<ArrayBuffer>, model = "listener") => {
    const answer = await transcribe({ base: node.base, key }, file, { query: { model } })
    expect(answer.status, await answer.clone().text()).toBe(202)
    return ((await answer.json()) as { job_id: string }).job_id
  }
  const textOf = async (file: Uint8Array<ArrayBuffer>, key: string) => {
    const answer = await transcribe({ base: shared.one.base, key }, file, {
      query: { model: "listener", sync: "true" },
    })
    return ((await answer.json()) as { text: string }).text
  }
  const files = () => readdirSync(shared.uploads).filter((name) => !name.startsWith("."))
  const noFiles = () => eventually(() => files().length === 0, "no shared upload is left")
  const windowsOf = async (node: TestNode, model = "slow-listener") =>
    (await node.metrics()).get(`edgewise_model_requests_total{model="${model}",outcome="done"}`) ?? 0
  const rowOf = (id: string) =>
    shared.beside(
      Effect.map(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) =>
            sql<{ attempt: number; node_id: string; status: string }>`
              SELECT attempt, node_id, status FROM transcription_jobs WHERE id = ${id}`,
        ),
        ([row]) => row!,
      ),
    )

  /** Gives both nodes as much as they do at once. Returns what takes it from them. */
  const occupied = async () => {
    const { key } = await shared.newOrg()
    const ids = await Promise.all(
      Array.from({ length: 4 }, () => submitTo(shared.one, key, wav(3), "stuck-listener")),
    )
    await eventually(async () => {
      const rows = await Promise.all(ids.map(rowOf))
      return rows.every(({ status }) => status === "processing")
    }, "both nodes are occupied")
    return async () => {
      for (const id of ids) await poll({ base: shared.one.base, key }, id, "DELETE")
    }
  }

  it("are done by both nodes, with the text of one that was not shared, and charged once each", async () => {
    const { key, orgId } = await shared.newOrg()
    const { key: other, orgId: otherId } = await shared.newOrg()
    const file = wav(6)
    const text = await textOf(file, other)
    const before = [await windowsOf(shared.one), await windowsOf(shared.two)]
    const worked = async () => {
      const after = [await windowsOf(shared.one), await windowsOf(shared.two)]
      return after.map((windows, nth) => windows > before[nth]!)
    }
    let count = 0
    // All to one node; again where the other one stood still until that had done them.
    for (let round = 0; round < 10 && (await worked()).includes(false); round++) {
      const ids = await Promise.all(
        Array.from({ length: 8 }, () => submitTo(shared.one, key, file, "slow-listener")),
      )
      for (const id of ids) {
        const done = await untilDone({ base: shared.two.base, key }, id)
        expect(done).toEqual({ status: 200, body: { job_id: id, status: "completed", text } })
      }
      count += ids.length
    }
    expect(await worked()).toEqual([true, true])
    expect(await shared.usage(orgId)).toMatchObject([{ requests: count, audioMs: count * 6_000 }])
    expect(await shared.usage(otherId)).toMatchObject([{ requests: 1 }])
    await noFiles()
  })

  it("are cancelled at the node that does not work at them, while they wait or in work", async () => {
    const { key, orgId } = await shared.newOrg()
    const long = wav(120)
    const ids: Array<string> = []
    for (let nth = 0; nth < 6; nth++) ids.push(await submitTo(shared.one, key, long, "stuck-listener"))
    await eventually(async () => (await rowOf(ids[0]!)).status === "processing", "the first is in work")
    for (const [nth, id] of ids.entries()) {
      const { base } = nth % 2 === 0 ? shared.two : shared.one
      expect(await poll({ base, key }, id, "DELETE")).toMatchObject({ body: { status: "cancelled" } })
    }
    await noFiles()
    const usage = await shared.usage(orgId)
    expect(usage[0]?.audioMs ?? 0).toBeLessThan(6 * 120_000)
    for (const id of ids)
      expect((await poll({ base: shared.one.base, key }, id)).body.status).toBe("cancelled")
  })

  it("go on at the other node when theirs stops, where it was", async () => {
    const { key, orgId } = await shared.newOrg()
    const { key: other } = await shared.newOrg()
    // Long enough not to end while the windows are counted.
    const file = wav(120, 7)
    const undisturbed = await windowsOf(shared.one, "listener")
    const text = await textOf(file, other)
    /** Windows of the whole file. */
    const all = (await windowsOf(shared.one, "listener")) - undisturbed
    expect(all).toBeGreaterThan(10)
    const both = async () => [await windowsOf(shared.one), await windowsOf(shared.two)] as const
    const begin = await both()

    const id = await submitTo(shared.two, key, file, "slow-listener")
    await eventually(async () => {
      const now = await both()
      return now[0] - begin[0] >= 4 || now[1] - begin[1] >= 4
    }, "some windows are transcribed")
    const index = (await windowsOf(shared.one)) - begin[0] >= 4 ? 0 : 1
    const [stopping, staying] = index === 0 ? [shared.one, shared.two] : [shared.two, shared.one]
    const done = (await windowsOf(stopping)) - begin[index]
    await stopping.stop()
    const before = begin[1 - index]!
    expect(await untilDone({ base: staying.base, key }, id)).toEqual({
      status: 200,
      body: { job_id: id, status: "completed", text },
    })
    // The window in work when the node stopped is done again.
    expect((await windowsOf(staying)) - before).toBeLessThanOrEqual(all - done + 1)
    expect((await rowOf(id)).attempt).toBe(2)
    await shared.startNode(index)
    expect(await shared.usage(orgId)).toMatchObject([{ requests: 1, audioMs: 120_000 }])
    await noFiles()
  })

  it("go on elsewhere when their node is dead, and the node that lost one charges nothing", async () => {
    const { key, orgId } = await shared.newOrg()
    const { key: other } = await shared.newOrg()
    // Long enough not to end before it is taken.
    const file = wav(120, 3)
    const text = await textOf(file, other)
    const id = await submitTo(shared.one, key, file, "slow-listener")
    // A node takes the job, from whichever has it, and beats no more.
    const taken = await shared.beside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`
          WITH gone AS (INSERT INTO nodes (id, beat, seen_at_ms) VALUES ('node_gone', 7, 0))
          UPDATE transcription_jobs SET status = 'processing', node_id = 'node_gone', attempt = attempt + 1
          WHERE id = ${id} AND status IN ('accepted', 'processing') RETURNING id`,
      ),
    )
    expect(taken).toEqual([{ id }])
    expect(await untilDone({ base: shared.two.base, key }, id)).toEqual({
      status: 200,
      body: { job_id: id, status: "completed", text },
    })
    expect((await rowOf(id)).attempt).toBeGreaterThanOrEqual(2)
    expect(await shared.usage(orgId)).toMatchObject([{ requests: 1, audioMs: 120_000 }])
    await noFiles()
  })

  it("fail without a charge if their file was changed or is gone", async () => {
    const { key, orgId } = await shared.newOrg()
    const free = await occupied()
    const before = new Set(files())
    const changed = await submitTo(shared.one, key, wav(5))
    const name = files().find((file) => !before.has(file))
    const gone = await submitTo(shared.one, key, wav(5))
    const removed = files().find((file) => !before.has(file) && file !== name)
    writeFileSync(join(shared.uploads, name!), wav(5, 9))
    unlinkSync(join(shared.uploads, removed!))
    await free()
    const ended = async (id: string) => (await untilDone({ base: shared.two.base, key }, id)).body
    expect(await ended(changed)).toMatchObject({
      status: "failed",
      detail: "The uploaded file was changed after it was accepted",
    })
    expect(await ended(gone)).toMatchObject({
      status: "failed",
      detail: "The uploaded file is no longer there",
    })
    expect(await shared.usage(orgId)).toEqual([])
    await noFiles()
  })

  it("wait while the folder is away, and new ones are refused", async () => {
    const { key, orgId } = await shared.newOrg()
    const free = await occupied()
    const id = await submitTo(shared.one, key, wav(5))
    renameSync(shared.uploads, `${shared.uploads}-away`)
    const refused = await transcribe({ base: shared.two.base, key }, wav(3), { query: { model: "listener" } })
    expect([refused.status, await refused.json()]).toMatchObject([503, { detail: "Store is unavailable" }])
    await free()
    await eventually(async () => {
      const { body } = await poll({ base: shared.one.base, key }, id)
      return body.detail === "paused: the uploaded file cannot be read now"
    }, "it waits")
    renameSync(`${shared.uploads}-away`, shared.uploads)
    expect(await untilDone({ base: shared.one.base, key }, id)).toMatchObject({ status: 200 })
    expect(await shared.usage(orgId)).toMatchObject([{ requests: 1, audioMs: 5_000 }])
  })
})

// Transcription jobs where nodes share the store: every node can read and cancel a job, its own node runs it, and a job
// of a node that never returns ends after a while.
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Jobs, LostAfter } from "#store/ledger/Jobs.ts"
import { BeatEvery } from "#store/nodes/Presence.ts"
import { storeLayer } from "#store/Store.ts"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import {
  poll,
  transcribe,
  untilDone,
  untilNoUploads,
  uploads,
} from "../../support/clients/TranscriptionClient.ts"
import { needs } from "../../support/groups/Needs.ts"
import { SharedNodes } from "../../support/nodes/SharedNodes.ts"
import { eventually, type TestNode, temporaryDir } from "../../support/nodes/TestNode.ts"

/** 2 s of audio take it 1.5 s: long enough for a request during its work. */
const slow = listener({ callMs: 1500 }, { id: "slow-listener" })

describe("jobs of two nodes", needs("postgresql"), () => {
  let shared: SharedNodes
  beforeAll(async () => {
    shared = await SharedNodes.start([listener(), slow], { beatMs: 200 })
    // A server, two nodes and their engines: a long timeout for a busy machine.
  })
  afterAll(() => shared?.stop())

  const wav = (seconds: number) => wavOf(noise(seconds)) as Uint8Array<ArrayBuffer>
  const submitTo = async (node: TestNode, key: string, seconds: number, model = "listener") => {
    const answer = await transcribe({ base: node.base, key }, wav(seconds), { query: { model } })
    expect(answer.status).toBe(202)
    return ((await answer.json()) as { job_id: string }).job_id
  }

  it("let a job be polled at either, and charge it once", async () => {
    const { key, orgId } = await shared.newOrg()
    const id = await submitTo(shared.one, key, 3)
    const done = await untilDone({ base: shared.two.base, key }, id)
    expect(done).toMatchObject({ status: 200, body: { status: "completed" } })
    expect(await poll({ base: shared.one.base, key }, id)).toEqual(done)
    await untilNoUploads(shared.one.dataDir)
    expect(await shared.usage(orgId)).toMatchObject([{ kind: "transcription", requests: 1, audioMs: 3000 }])
    const stranger = await shared.newOrg()
    expect((await poll({ base: shared.two.base, key: stranger.key }, id)).status).toBe(404)
  })

  it("cancel each other's jobs: the work stops, its file goes, what was transcribed is charged", async () => {
    const { key, orgId } = await shared.newOrg()
    const id = await submitTo(shared.one, key, 120, "slow-listener")
    await eventually(
      async () => (await poll({ base: shared.two.base, key }, id)).body.status === "processing",
      "the job is in work",
    )
    // The model has transcribed a window of it: each window is a request to the model.
    const windows = 'edgewise_model_requests_total{model="slow-listener",outcome="done"}'
    await eventually(
      async () => ((await shared.one.metrics()).get(windows) ?? 0) > 0,
      "a window is transcribed",
    )
    expect(uploads(shared.one.dataDir)).toHaveLength(1)
    expect(await poll({ base: shared.two.base, key }, id, "DELETE")).toEqual({
      status: 200,
      body: { job_id: id, status: "cancelled" },
    })
    await untilNoUploads(shared.one.dataDir)
    const [row] = await shared.usage(orgId)
    expect(row?.audioMs ?? 0).toBeLessThan(120_000)
    expect((await poll({ base: shared.one.base, key }, id)).body.status).toBe("cancelled")
  })

  /** Completes when another node has failed one lost job. For that node an hour is a second. */
  const failedByImpatient = async () => {
    const dir = temporaryDir()
    const layer = Layer.fresh(storeLayer({ dataDir: dir.path, databaseUrl: shared.databaseUrl })).pipe(
      Layer.provide(Layer.merge(Layer.succeed(BeatEvery, 200), Layer.succeed(LostAfter, 1_000))),
    )
    await Effect.flatMap(Jobs, ({ failLost }) =>
      Effect.promise(() =>
        eventually(async () => (await Effect.runPromise(failLost)) === 1, "a lost job is failed"),
      ),
    ).pipe(Effect.provide(layer), Effect.runPromise)
    dir.remove()
  }

  it("leave a job to the node that has its file, until that has been away for an hour", async () => {
    const { key } = await shared.newOrg()
    const id = await submitTo(shared.two, key, 120, "slow-listener")
    await shared.two.stop()
    const target = { base: shared.one.base, key }
    // Given back when its node stopped, and not taken by another.
    await eventually(async () => (await poll(target, id)).body.status === "accepted", "it was given back")
    // The other node looks for jobs and takes those that it may: one that came later is done, this one is not begun.
    const later = await submitTo(shared.one, key, 1)
    expect((await untilDone(target, later)).status).toBe(200)
    expect((await poll(target, id)).body.status).toBe("accepted")
    const look = () => shared.one.run(Effect.flatMap(Jobs, (jobs) => jobs.failLost))
    // Whatever the database's clock shows.
    await shared.beside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`UPDATE nodes SET seen_at_ms = seen_at_ms - 90000000::BIGINT`,
      ),
    )
    expect(await look()).toBe(0)
    await failedByImpatient()
    expect(await poll(target, id)).toEqual({
      status: 400,
      body: {
        job_id: id,
        status: "failed",
        detail: "The node that had the upload has not come back within an hour",
      },
    })
    // If the node comes back, the file is removed and the job stays failed.
    await shared.startNode(1)
    await untilNoUploads(shared.two.dataDir)
    expect((await poll({ base: shared.two.base, key }, id)).body.status).toBe("failed")
    // Jobs that it accepts from now on are its own again.
    const next = await submitTo(shared.two, key, 1)
    expect((await untilDone(target, next)).status).toBe(200)
  })
})

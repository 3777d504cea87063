// Transcription jobs of two nodes whose uploads lie in a bucket of a service that checks signatures: any node does any job and charges it
// once, no object stays, and a service that is away or an object that was changed ends in a clear error and no charge.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import { poll, transcribe, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { needs } from "../../support/groups/Needs.ts"
import { SharedNodes } from "../../support/nodes/SharedNodes.ts"
import { eventually, type TestNode } from "../../support/nodes/TestNode.ts"
import { type S3Server, startS3 } from "../../support/servers/S3Server.ts"

/** 2 s of audio take it 0.1 s. */
const slow = listener({ callMs: 100 }, { id: "slow-listener" })
/** Its jobs end only by being cancelled: a call takes it longer than any test. */
const stuck = listener({ callMs: 100_000 }, { id: "stuck-listener" })

describe("jobs with uploads in a bucket", needs("postgresql"), () => {
  let s3: S3Server
  let shared: SharedNodes
  const before = { ...process.env }
  beforeAll(async () => {
    s3 = await startS3()
    const { accessKeyId, endpoint, region, secretAccessKey } = s3.access
    Object.assign(process.env, {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_REGION: region,
      AWS_ENDPOINT_URL_S3: endpoint,
    })
    shared = await SharedNodes.start([listener(), slow, stuck], {
      beatMs: 200,
      sharedUploads: `s3://${s3.bucket}/region/a`,
    })
    // A server, two nodes and their engines: a long timeout for a busy machine.
  })
  afterAll(async () => {
    for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name]
    Object.assign(process.env, before)
    await shared?.stop()
    await s3?.stop()
  })

  const wav = (seconds: number, seed = 1) => wavOf(noise(seconds, seed)) as Uint8Array<ArrayBuffer>
  const submitTo = async (node: TestNode, key: string, file: Uint8Array<ArrayBuffer>, model = "listener") => {
    const answer = await transcribe({ base: node.base, key }, file, { query: { model } })
    expect(answer.status, await answer.clone().text()).toBe(202)
    return ((await answer.json()) as { job_id: string }).job_id
  }
  const uploads = () => [...s3.objects.keys()].filter((key) => key.startsWith("region/a/uploads/"))
  const noUploads = () => eventually(() => uploads().length === 0, "no upload is left in the bucket")
  const windowsOf = async (node: TestNode) =>
    (await node.metrics()).get('edgewise_model_requests_total{model="slow-listener",outcome="done"}') ?? 0
  /** Gives both nodes as much as they do at once. Returns what takes it from them. */
  const occupied = async () => {
    const { key } = await shared.newOrg()
    const ids = await Promise.all(
      Array.from({ length: 4 }, () => submitTo(shared.one, key, wav(3), "stuck-listener")),
    )
    await eventually(async () => {
      const answers = await Promise.all(ids.map((id) => poll({ base: shared.one.base, key }, id)))
      return answers.every(({ body }) => body.status === "processing")
    }, "both nodes are occupied")
    return async () => {
      for (const id of ids) await poll({ base: shared.one.base, key }, id, "DELETE")
    }
  }

  it("are done by both nodes, and charged once each; no object stays", async () => {
    const { key, orgId } = await shared.newOrg()
    const file = wav(6)
    const asked = await transcribe({ base: shared.two.base, key: (await shared.newOrg()).key }, file, {
      query: { model: "listener", sync: "true" },
    })
    const { text } = (await asked.json()) as { text: string }
    const start = [await windowsOf(shared.one), await windowsOf(shared.two)]
    const worked = async () => {
      const end = [await windowsOf(shared.one), await windowsOf(shared.two)]
      return end.map((windows, nth) => windows > start[nth]!)
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
    await noUploads()
  })

  it("are cancelled at the node that does not work at them, and their objects go", async () => {
    const { key } = await shared.newOrg()
    const ids: Array<string> = []
    for (let nth = 0; nth < 6; nth++) ids.push(await submitTo(shared.one, key, wav(60), "stuck-listener"))
    for (const [nth, id] of ids.entries()) {
      const { base } = nth % 2 === 0 ? shared.two : shared.one
      expect(await poll({ base, key }, id, "DELETE")).toMatchObject({ body: { status: "cancelled" } })
    }
    await noUploads()
  })

  it("are refused by a service that refuses or cuts, without a row, a charge or an object", async () => {
    const { key, orgId } = await shared.newOrg()
    for (const does of [
      { refuse: [403, "AccessDenied"] },
      { refuse: [507, "QuotaExceeded"] },
      "cut",
      "break",
    ] as const) {
      s3.faults.push({ method: "PUT", does })
      const answer = await transcribe({ base: shared.two.base, key }, wav(3), {
        query: { model: "listener" },
      })
      expect([answer.status, await answer.json()]).toMatchObject([503, { detail: "Store is unavailable" }])
      s3.faults.length = 0
    }
    const rows = await shared.beside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`SELECT id FROM transcription_jobs WHERE org_id = ${orgId}`,
      ),
    )
    expect(rows).toEqual([])
    expect(uploads()).toEqual([])
    expect(await shared.usage(orgId)).toEqual([])
  })

  it("wait while their objects cannot be read, and are done afterwards", async () => {
    const { key, orgId } = await shared.newOrg()
    const free = await occupied()
    const id = await submitTo(shared.one, key, wav(5))
    s3.faults.push({ method: "GET", key: "uploads/", does: { refuse: [403, "AccessDenied"] } })
    await free()
    await eventually(async () => {
      const { body } = await poll({ base: shared.one.base, key }, id)
      return body.detail === "paused: the uploaded file cannot be read now"
    }, "it waits")
    s3.faults.length = 0
    expect(await untilDone({ base: shared.one.base, key }, id)).toMatchObject({ status: 200 })
    expect(await shared.usage(orgId)).toMatchObject([{ requests: 1, audioMs: 5_000 }])
  })

  it("fail without a charge if their object was changed or is gone", async () => {
    const { key, orgId } = await shared.newOrg()
    const free = await occupied()
    const known = new Set(uploads())
    const changed = await submitTo(shared.one, key, wav(5))
    const [one] = uploads().filter((name) => !known.has(name))
    const gone = await submitTo(shared.one, key, wav(5))
    const [two] = uploads().filter((name) => !known.has(name) && name !== one)
    s3.objects.set(one!, { ...s3.objects.get(one!)!, bytes: Buffer.from(wav(5, 9)) })
    s3.objects.delete(two!)
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
    await noUploads()
  })
})

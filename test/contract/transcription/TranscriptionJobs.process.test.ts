// Properties of accepted jobs: only their owners can read them, they survive restarts, are charged once for what was
// decoded, wait for credit with that status, can be cancelled, and leave no file behind.
import { Effect } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { Drain } from "#actors/Drain.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { Jobs, maxUnfinishedOfOrg } from "#store/ledger/Jobs.ts"
import { type Clip, clipBytes, clips, sparseWav } from "../../support/audio/SpeechClips.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { TextStream } from "../../support/clients/TextStream.ts"
import {
  metered,
  model,
  path,
  poll,
  post,
  submit,
  type Target,
  targetOf,
  transcribe,
  untilDone,
  untilNoUploads,
  uploads,
} from "../../support/clients/TranscriptionClient.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { eventually, startNode, type TestNode, temporaryDir } from "../../support/nodes/TestNode.ts"

type Bytes = Uint8Array<ArrayBuffer>
const clip = clips[3] as Clip
const short = clipBytes(clip) as Bytes
/** 8 s of audio take it 60 ms. */
const ears = listener({ callMs: 60, pieceSeconds: 8 }, { id: model })
const wavMs = (bytes: Uint8Array): number => Math.ceil(((bytes.length - 44) / 2 / 16_000) * 1000)

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [ears, listener({ callMs: 1_000, pieceSeconds: 8 }, { id: "dawdles" })] })
})
afterAll(() => node.stop())

let orgs = 0
/** A new organization with that many micro-dollars, and a key of it. */
const orgWith = async (on: TestNode, creditsMicroDollars: number): Promise<{ org: string; key: string }> => {
  const org = `org${orgs++}`
  const { apiKey } = await on.run(
    Effect.gen(function* () {
      const accounts = yield* Accounts
      yield* accounts.createOrg({ name: org, creditsMicroDollars })
      return yield* accounts.createKey({ org })
    }),
  )
  return { org, key: apiKey }
}
const credit = (on: TestNode, org: string, microDollars: number) =>
  on.run(Effect.flatMap(Accounts, (accounts) => accounts.creditOrg(org, microDollars)))

const statusOf = async (target: Target, id: string): Promise<unknown> => (await poll(target, id)).body.status
const untilStatus = (target: Target, id: string, status: string) =>
  eventually(async () => (await statusOf(target, id)) === status, `${status}`)

describe("who can read a job", () => {
  it("its organization, with any key; to others it is as unknown as a job that never was", async () => {
    const owner = await orgWith(node, 1_000_000)
    const colleague = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: owner.org, user: "other" })),
    )
    const id = await submit(targetOf(node, owner.key), short)
    expect((await untilDone(targetOf(node, colleague.apiKey), id)).status).toBe(200)
    const stranger = targetOf(node)
    const never = `job_transcription_${"0".repeat(24)}`
    for (const method of ["GET", "DELETE"] as const) {
      const others = await poll(stranger, id, method)
      expect(others).toEqual(await poll(stranger, never, method))
      expect(others).toEqual({ status: 404, body: { detail: "Job not found" } })
    }
    expect((await poll(targetOf(node, owner.key), id)).status).toBe(200)
  })

  it.each(["GET", "DELETE"])("%s without an id is a bad request", async (method) => {
    for (const query of ["", "?job_id="]) {
      const response = await node.fetch(`${path}${query}`, {
        method,
        headers: { authorization: `Bearer ${node.keys.dev}` },
      })
      expect([response.status, await response.json()]).toEqual([400, { detail: "job_id: is required" }])
    }
  })
})

describe("what a job costs", () => {
  it("is its decoded time, once, whatever it was asked in", async () => {
    const { key, org } = await orgWith(node, 1_000_000)
    const target = targetOf(node, key)
    const ids = [await submit(target, short), await submit(target, short, { response_format: "srt" })]
    for (const id of ids) expect((await untilDone(target, id)).status).toBe(200)
    await post(node, short, { key, query: { model, sync: "true" } })
    await (await post(node, short, { key, query: { model, stream: "true" } })).text()
    expect(await metered(node, org)).toEqual({ requests: 4, audioMs: 4 * wavMs(short) })
  })

  it("is nothing for a file that is no audio, and nothing for a refused request", async () => {
    const { key, org } = await orgWith(node, 1_000_000)
    const target = targetOf(node, key)
    const id = await submit(target, Buffer.from("not audio") as Bytes)
    await untilDone(target, id)
    await post(node, short, { key, query: { model, sync: "true", temperature: "2" } })
    expect(await metered(node, org)).toEqual({ requests: 0, audioMs: 0 })
  })

  it.each(["a job", "synchronously", "streamed"])("402 before any work: %s", async (mode) => {
    const query: Record<string, string> = { model }
    if (mode !== "a job") query[mode === "streamed" ? "stream" : "sync"] = "true"
    const response = await post(node, short, { key: node.keys.broke, query })
    expect([response.status, await response.json()]).toEqual([402, { detail: "Billing access denied" }])
    expect(uploads(node.dataDir)).toEqual([])
  })

  it("an organization with exactly the price of the file gets it; with a micro-dollar less, not", async () => {
    const price = Math.ceil((wavMs(short) * 4000) / 60_000)
    const enough = await orgWith(node, price)
    const response = await post(node, short, { key: enough.key, query: { model, sync: "true" } })
    expect(response.status).toBe(200)
    const short1 = await orgWith(node, price - 1)
    const refused = await post(node, short, { key: short1.key, query: { model, sync: "true" } })
    expect(refused.status).toBe(402)
    expect(await metered(node, short1.org)).toEqual({ requests: 0, audioMs: 0 })
  })
})

describe("a job without credit", () => {
  it("pauses with that status, goes on after credit, and is charged once for all of it", async () => {
    const long = sparseWav(90) as Bytes
    // Enough for a little more than a minute: the first windows are transcribed, then the money is spent.
    const { key, org } = await orgWith(node, 4_500)
    const target = targetOf(node, key)
    const id = await submit(target, long)
    await eventually(async () => "detail" in (await poll(target, id)).body, "the job pauses")
    expect(await poll(target, id)).toEqual({
      status: 202,
      body: {
        job_id: id,
        status: "accepted",
        poll_interval_ms: 500,
        detail: "paused: the organization has no credit left",
      },
    })
    // Nothing is charged for half a transcript, and the file is still there.
    expect(await metered(node, org)).toEqual({ requests: 0, audioMs: 0 })
    expect(uploads(node.dataDir)).toHaveLength(1)
    // Meanwhile the node accepts no further files of this organization.
    const another = await post(node, long, { key, query: { model } })
    expect([another.status, await another.json()]).toEqual([402, { detail: "Billing access denied" }])
    await credit(node, org, 1_500)
    const done = await untilDone(target, id)
    expect(done.status).toBe(200)
    expect(await metered(node, org)).toEqual({ requests: 1, audioMs: 90_000 })
    const whole = await post(node, long, { query: { model, sync: "true" } })
    expect(done.body.text).toBe(((await whole.json()) as { text: string }).text)
    await untilNoUploads(node.dataDir)
  })
})

describe("DELETE", () => {
  it("cancels a waiting or running job, charges what was transcribed, and removes the file", async () => {
    const { key, org } = await orgWith(node, 100_000_000)
    const target = targetOf(node, key)
    const long = sparseWav(300) as Bytes
    // They take 38 s each.
    const ids: Array<string> = []
    for (let nth = 0; nth < 3; nth++) ids.push(await submit(target, long, { model: "dawdles" }))
    await eventually(
      async () =>
        (await Promise.all(ids.map((id) => statusOf(target, id)))).filter((s) => s === "processing")
          .length === 2,
      "two jobs run",
    )
    for (const id of ids) {
      expect(await poll(target, id, "DELETE")).toEqual({
        status: 200,
        body: { job_id: id, status: "cancelled" },
      })
      expect(await poll(target, id)).toEqual({
        status: 400,
        body: { job_id: id, status: "cancelled", detail: "The job was cancelled" },
      })
      // A second one removes the job, whose last status it answers.
      expect(await poll(target, id, "DELETE")).toEqual({
        status: 200,
        body: { job_id: id, status: "cancelled" },
      })
    }
    await untilNoUploads(node.dataDir)
    const { audioMs, requests } = await metered(node, org)
    expect(requests).toBeLessThanOrEqual(2)
    expect(audioMs).toBeLessThan(2 * 300_000)
    await eventually(
      async () => (await node.metrics()).get("edgewise_requests_in_flight") === 0,
      "the engine is free",
    )
  })

  it("removes a finished job with its result", async () => {
    const id = await submit(targetOf(node), short)
    expect((await untilDone(targetOf(node), id)).status).toBe(200)
    expect(await poll(targetOf(node), id, "DELETE")).toEqual({
      status: 200,
      body: { job_id: id, status: "completed" },
    })
    expect(await poll(targetOf(node), id)).toEqual({ status: 404, body: { detail: "Job not found" } })
  })

  it("charges a job that is cancelled between two slices for what was transcribed of it", async () => {
    const { key, org } = await orgWith(node, 4_500)
    const target = targetOf(node, key)
    const id = await submit(target, sparseWav(90) as Bytes)
    await eventually(async () => "detail" in (await poll(target, id)).body, "the job pauses")
    await poll(target, id, "DELETE")
    const { audioMs, requests } = await metered(node, org)
    expect(requests).toBe(1)
    expect(audioMs).toBeGreaterThan(10_000)
    expect(audioMs).toBeLessThan(90_000)
  })
})

describe("a key that is revoked", () => {
  const revoke = (key: string) =>
    node.run(
      Effect.gen(function* () {
        const accounts = yield* Accounts
        yield* accounts.revokeKey((yield* accounts.authenticate(key)).keyId)
      }),
    )

  it("ends its jobs between two slices", async () => {
    const { key, org } = await orgWith(node, 4_500)
    const other = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org, user: "other" })),
    )
    const id = await submit(targetOf(node, key), sparseWav(90) as Bytes)
    await eventually(async () => "detail" in (await poll(targetOf(node, key), id)).body, "the job pauses")
    await revoke(key)
    expect(await untilDone(targetOf(node, other.apiKey), id)).toEqual({
      status: 400,
      body: { job_id: id, status: "failed", detail: "Invalid API key" },
    })
    await untilNoUploads(node.dataDir)
  })

  it("ends its interactive requests", inLong, async () => {
    const { key } = await orgWith(node, 10_000_000)
    const file = sparseWav(600) as Bytes
    const stream = new TextStream(await post(node, file, { key, query: { model, stream: "true" } }))
    await revoke(key)
    await stream.toEnd()
    expect(JSON.parse(stream.events.at(-2)!)).toEqual({ type: "error", error: "Invalid API key" })
    expect(stream.events.at(-1)).toBe("[DONE]")
    await untilNoUploads(node.dataDir)
  })
})

describe("a queue", () => {
  it("has a bound for each organization", async () => {
    const { key } = await orgWith(node, 1_000_000)
    const { orgId, keyId } = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.authenticate(key)),
    )
    const options = {
      language: null,
      prompt: "",
      temperature: 0,
      punctuation: null,
      format: "json" as const,
      granularities: [],
    }
    // Jobs of a missing model wait; written as rows only, so that the test need not send a hundred files.
    const job = { orgId, keyId, model: "gone", options, uploadPath: "/nowhere" }
    const accepted = await node.run(
      Effect.flatMap(Jobs, (jobs) => Effect.replicateEffect(jobs.accept(job), maxUnfinishedOfOrg)),
    )
    expect(accepted).not.toContain(undefined)
    const refused = await post(node, short, { key, query: { model } })
    expect([refused.status, await refused.json()]).toEqual([503, { detail: "Model is at capacity" }])
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    // Other organizations are served, and so is this one's interactive request.
    await untilDone(targetOf(node), await submit(targetOf(node), short))
    expect((await post(node, short, { key, query: { model, sync: "true" } })).status).toBe(200)
    for (const id of accepted) await poll(targetOf(node, key), id ?? "", "DELETE")
    expect((await post(node, short, { key, query: { model } })).status).toBe(202)
  })

  it(
    "alternates between organizations, so that a short job is not behind another's long ones",
    inLong,
    async () => {
      const busy = targetOf(node, (await orgWith(node, 100_000_000)).key)
      const quick = targetOf(node, (await orgWith(node, 1_000_000)).key)
      const long = sparseWav(200) as Bytes
      const longs = [await submit(busy, long), await submit(busy, long), await submit(busy, long)]
      await untilStatus(busy, longs[1]!, "processing")
      const id = await submit(quick, short)
      expect((await untilDone(quick, id)).status).toBe(200)
      const states = await Promise.all(longs.map((each) => statusOf(busy, each)))
      // It came last and is done first: two long ones had a slice each, none has ended.
      expect(states.filter((status) => status === "completed").length).toBeLessThanOrEqual(1)
      const texts = await Promise.all(longs.map((each) => untilDone(busy, each)))
      // A job that was suspended goes on where it was: the same text as those that were not.
      expect(new Set(texts.map(({ body }) => body.text)).size).toBe(1)
    },
  )
})

describe("a restart", () => {
  const dir = temporaryDir()
  let current: TestNode | undefined
  afterEach(() => current?.stop())
  afterAll(() => dir.remove())
  const start = async (callMs: number) => {
    const models = [listener({ callMs, pieceSeconds: 8 }, { id: model })]
    current = await startNode({ models, dataDir: dir.path })
    return current
  }

  it("keeps results, goes on with what was accepted, and charges it once", async () => {
    // Slow enough for the long file not to end before.
    const first = await start(1_000)
    const key = first.keys.dev
    const done = await submit(targetOf(first), short)
    const result = await untilDone(targetOf(first), done)
    const long = sparseWav(120) as Bytes
    const ids = [
      await submit(targetOf(first), long),
      await submit(targetOf(first), short),
      await submit(targetOf(first), short),
    ]
    await untilStatus(targetOf(first), ids[0]!, "processing")
    const before = await metered(first, "dev")
    await first.stop()
    expect(uploads(dir.path).length).toBeGreaterThan(0)

    const second = await start(60)
    const target = targetOf(second, key)
    expect(await poll(target, done)).toEqual(result)
    for (const id of ids) expect((await untilDone(target, id)).status).toBe(200)
    await untilNoUploads(dir.path)
    const after = await metered(second, "dev")
    expect(before.audioMs + 120_000 + 2 * wavMs(short)).toBeGreaterThanOrEqual(after.audioMs)
    expect(after).toEqual({ requests: 4, audioMs: 120_000 + 3 * wavMs(short) })
    await second.stop()
  })
})

describe("a node that is stopped", () => {
  it("refuses new files with 503", async () => {
    const stopping = await startNode({ models: [ears] })
    await stopping.run(Effect.forkDetach(Effect.flatMap(Drain, (drain) => drain.close)))
    for (const query of [{ model }, { model, sync: "true" }, { model, stream: "true" }]) {
      const response = await transcribe(targetOf(stopping), short, { query })
      expect([response.status, await response.json()]).toEqual([503, { detail: "Server is shutting down" }])
    }
    await stopping.stop()
  })
})

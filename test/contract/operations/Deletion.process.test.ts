// The deletion of an organization, a user, a job and kept answers on a running node: what runs ends with its typed error, nothing of it
// is left in any file, log line or later backup, and other callers notice nothing.
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { TextStream } from "../../support/clients/TextStream.ts"
import { poll, submit, untilDone, uploads } from "../../support/clients/TranscriptionClient.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { edgewise, type NodeProcess, processLoaded, startProcess } from "../../support/nodes/NodeProcess.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { filesWith } from "../../support/process/FilesWith.ts"

/** Two seconds of audio take the slow one half a second. */
const models = [
  fakeModel,
  listener({ words: ["violetword"] }),
  listener({ callMs: 500 }, { id: "slow-listener" }),
]

let node: NodeProcess
let operator: string
beforeAll(async () => {
  node = await startProcess({ models, env: { EDGEWISE_LOG_LEVEL: "debug" } })
  operator = await newKey("ops", "admin", "--scope", "superadmin")
  await processLoaded(node, "fake", "listener", "slow-listener")
})
afterAll(() => node.dispose())

const command = (...args: ReadonlyArray<string>) => edgewise(args, { EDGEWISE_DATA_DIR: node.dataDir })

const newKey = async (org: string, user: string, ...more: ReadonlyArray<string>): Promise<string> => {
  const { stdout } = await command("keys", "create", "--org", org, "--user", user, ...more, "--json")
  return (JSON.parse(stdout) as { api_key: string }).api_key
}

const remove = async (path: string, query: Readonly<Record<string, string>>, key = operator) => {
  const response = await fetch(`${node.base}${path}?${new URLSearchParams(query)}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${key}` },
  })
  return { status: response.status, body: (await response.json()) as Readonly<Record<string, unknown>> }
}

const chat = (
  key: string,
  content: string,
  more: object = {},
  headers: Readonly<Record<string, string>> = {},
) =>
  fetch(`${node.base}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "fake", messages: [{ role: "user", content }], ...more }),
  })

const audio = (seconds: number): Uint8Array<ArrayBuffer> =>
  Buffer.concat([wavOf(noise(seconds)), Buffer.from("violet-upload")])

/** Names, texts of requests and texts of answers. */
const marks = ["violet-inc", "gonzo", "violet-prompt", "violet-hint", "violetword", "violet-upload"]

const endless = script({ tokens: 4000, tokenMs: 20 })

describe("an organization that is deleted", () => {
  it("ends with all that runs, and no byte of its names and texts is left", async () => {
    const key = await newKey("violet-inc", "gonzo")
    const other = await newKey("kept-inc", "kermit")
    const target = { base: node.base, key }
    const answered = await chat(key, "violet-prompt", {}, { "idempotency-key": "once" })
    expect(answered.status).toBe(200)
    await answered.text()
    const finished = await submit(target, audio(2), { model: "listener", prompt: "violet-hint" })
    const text = JSON.stringify((await untilDone(target, finished)).body)
    expect(text).toContain("violetword")
    const running = await submit(target, audio(60), { model: "slow-listener", prompt: "violet-hint" })
    await eventually(async () => (await poll(target, running)).body.status === "processing", "it is in work")
    const waiting = await submit(target, audio(60), { model: "slow-listener" })
    expect(filesWith(node.dataDir, marks).length).toBeGreaterThan(0)

    const stream = new TextStream(await chat(key, endless, { stream: true, max_tokens: 4096 }))
    const bystander = new TextStream(await chat(other, endless, { stream: true, max_tokens: 4096 }))
    await stream.take(2)
    await bystander.take(2)
    const streamEnded = stream.toEnd()
    const sockets = [
      "/v1/completions/ws?",
      "/v1/audio/transcriptions/ws?model=listener&prompt=violet-hint&",
      "/v1/realtime?intent=transcription&model=listener&",
    ]
    const base = node.base.replace("http", "ws")
    const opened = await Promise.all(sockets.map((path) => SocketClient.open(`${base}${path}token=${key}`)))

    const { body, status } = await remove("/v1/orgs", { org: "violet-inc" })
    expect([status, body]).toEqual([
      200,
      {
        status: "success",
        org_id: expect.stringMatching(/^org_/),
        deleted: { users: 1, keys: 1, client_secrets: 0, jobs: 3, answers: 1, receipts: expect.any(Number) },
        waiting_uploads: 0,
        kept: expect.arrayContaining([expect.objectContaining({ model: "fake", kind: "text" })]),
      },
    ])

    expect(await streamEnded).toBe("cut")
    expect(JSON.parse(stream.events.at(-1)!)).toEqual({
      error: { message: "Invalid API key", type: "invalid_request_error" },
    })
    for (const socket of opened) {
      expect(await socket.closed).toEqual({ code: 1008, reason: "credential revoked" })
    }
    for (const job of [finished, running, waiting]) {
      expect(await poll(target, job)).toEqual({ status: 401, body: { detail: "Invalid API key" } })
    }
    expect(uploads(node.dataDir).filter((name) => name !== "rings")).toEqual([])
    // What the stream used until it ended is summed within a minute; its receipt has ids only.
    expect(filesWith(node.dataDir, marks)).toEqual([])
    const output = node.stdout() + node.stderr()
    expect(marks.filter((mark) => output.includes(mark))).toEqual([])

    const backup = join(node.dataDir, "..", "later.tar")
    expect(await command("backup", backup)).toMatchObject({ status: 0 })
    expect(
      filesWith(join(node.dataDir, ".."), marks).filter((line) => !line.includes("catalog.json")),
    ).toEqual([])
    rmSync(backup)

    const seen = bystander.events.length
    await bystander.take(seen + 2)
    await bystander.leave()
    expect(await remove("/v1/orgs", { org: "violet-inc" })).toEqual({
      status: 404,
      body: { detail: "org: no organization has this name" },
    })
    expect(await command("orgs", "delete", "violet-inc")).toMatchObject({
      status: 1,
      stdout: "",
      stderr: "no organization violet-inc\n",
    })
    const { stdout } = await command("usage", "--deleted", "--json")
    const sums = JSON.parse(stdout) as { readonly usage: ReadonlyArray<{ readonly model: string }> }
    expect(sums.usage.map(({ model }) => model)).toEqual(expect.arrayContaining(["fake", "listener"]))
  })

  it("by the command, beside the node: the node ends the job in work and removes its upload", async () => {
    const key = await newKey("violet-inc", "gonzo")
    const target = { base: node.base, key }
    const running = await submit(target, audio(60), { model: "slow-listener" })
    await eventually(async () => (await poll(target, running)).body.status === "processing", "it is in work")
    const stream = new TextStream(await chat(key, endless, { stream: true, max_tokens: 4096 }))
    await stream.take(2)
    const ended = stream.toEnd()
    const deleted = await command("orgs", "delete", "violet-inc")
    expect(deleted).toMatchObject({ status: 0, stderr: "" })
    expect(deleted.stdout).toMatch(
      /^violet-inc deleted: 1 user, 1 key, 1 job.*\nkept for accounting, without /,
    )
    expect(readdirSync(join(node.dataDir, "uploads")).filter((name) => name !== "rings")).toEqual([])
    expect(await ended).toBe("cut")
    await eventually(async () => (await chat(key, "hi")).status === 401, "the key is refused")
    expect(filesWith(node.dataDir, ["violet-inc", "gonzo", "violet-upload"])).toEqual([])
  })
})

describe("a part of an organization", () => {
  it("a user, a job of a state each, and kept answers go; the rest stays", async () => {
    const key = await newKey("parts", "kermit")
    const gone = await newKey("parts", "gonzo")
    const target = { base: node.base, key }
    const finished = await submit(target, audio(2), { model: "listener" })
    await untilDone(target, finished)
    const running = await submit(target, audio(60), { model: "slow-listener" })
    const once = { "idempotency-key": "parts" }
    await (await chat(key, "hi", {}, once)).text()
    expect((await chat(key, "hi", {}, once)).headers.get("idempotency-replayed")).toBe("true")

    const other = await newKey("strangers", "kermit")
    const wrong = await remove("/v1/orgs/jobs", { org: "strangers", job_id: finished })
    expect(wrong).toEqual({ status: 404, body: { detail: "Job not found" } })
    for (const id of [finished, running]) {
      expect(await remove("/v1/orgs/jobs", { org: "parts", job_id: id })).toMatchObject({
        status: 200,
        body: { deleted: { jobs: 1, keys: 0 }, waiting_uploads: 0 },
      })
      expect(await poll(target, id)).toEqual({ status: 404, body: { detail: "Job not found" } })
      expect(await remove("/v1/orgs/jobs", { org: "parts", job_id: id })).toMatchObject({ status: 404 })
    }
    expect(await remove("/v1/orgs/answers", { org: "parts" })).toMatchObject({
      status: 200,
      body: { deleted: { answers: 1 } },
    })
    expect((await chat(key, "hi", {}, once)).headers.get("idempotency-replayed")).toBeNull()
    expect(await remove("/v1/orgs/users", { org: "parts", user: "gonzo" })).toMatchObject({
      status: 200,
      body: { deleted: { users: 1, keys: 1 } },
    })
    expect((await chat(gone, "hi")).status).toBe(401)
    expect((await chat(key, "hi")).status).toBe(200)
    expect((await chat(other, "hi")).status).toBe(200)
  })

  it.each([
    ["/v1/orgs", {}, 400, "org: is required"],
    ["/v1/orgs/users", { org: "parts" }, 400, "user: is required"],
    [
      "/v1/orgs/users",
      { org: "parts", user: "none" },
      404,
      "user: no user of the organization has this name",
    ],
    ["/v1/orgs/users", { org: "none", user: "kermit" }, 404, "org: no organization has this name"],
    ["/v1/orgs/jobs", { org: "parts" }, 400, "job_id: is required"],
    ["/v1/orgs/jobs", { org: "parts", job_id: "none" }, 404, "Job not found"],
    ["/v1/orgs/answers", { org: "none" }, 404, "org: no organization has this name"],
  ])("%s with %o is refused with one line", async (path, query, status, detail) => {
    expect(await remove(path, query)).toEqual({ status, body: { detail } })
  })

  it("is deleted by operators only", async () => {
    const key = await newKey("parts", "kermit")
    for (const [path, query] of [
      ["/v1/orgs", { org: "parts" }],
      ["/v1/orgs/users", { org: "parts", user: "kermit" }],
      ["/v1/orgs/jobs", { org: "parts", job_id: "x" }],
      ["/v1/orgs/answers", { org: "parts" }],
    ] as const) {
      const { body, status } = await remove(path, query, key)
      expect([path, status, body]).toEqual([path, 403, { detail: "Requires the superadmin scope" }])
    }
    expect((await chat(key, "hi")).status).toBe(200)
  })
})

it("DELETE of a finished job removes it with its transcript, once, for its own organization", async () => {
  const key = await newKey("owners", "kermit")
  const stranger = await newKey("strangers", "kermit")
  const target = { base: node.base, key }
  const id = await submit(target, audio(2), { model: "listener" })
  await untilDone(target, id)
  expect(await poll({ base: node.base, key: stranger }, id, "DELETE")).toMatchObject({ status: 404 })
  expect((await poll(target, id)).status).toBe(200)
  expect(await poll(target, id, "DELETE")).toEqual({ status: 200, body: { job_id: id, status: "completed" } })
  for (const method of ["GET", "DELETE"] as const) {
    expect(await poll(target, id, method)).toEqual({ status: 404, body: { detail: "Job not found" } })
  }
})

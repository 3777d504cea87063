// Every edge endpoint with every kind of credential, as an API key and as the session made of it; and that no
// credential can be read from a file or log afterwards.
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { decodeJwt, decodeProtectedHeader } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { StoredKey } from "#store/signing/SigningKeyStore.ts"
import { sparseWav } from "../../support/audio/SpeechClips.ts"
import { privateKeyOf, signedWith } from "../../support/clients/ForgedTokens.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { startProcess } from "../../support/nodes/NodeProcess.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"

const chat = { model: "fake", messages: [{ role: "user", content: "hello" }], max_tokens: 4 }
const completion = { model: "fake", prompt: "hello", max_tokens: 4 }

const speech = { model: "fake-voice", input: "Hello.", voice: "fake", response_format: "pcm" }
const transcriptions = "/v1/audio/transcriptions?model=listener"
const file = Uint8Array.from(sparseWav(1))

interface Endpoint {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  /** The path in the OpenAPI document, where it has parameters. */
  readonly documented?: string
  readonly body?: object
  /** A client secret opens it, too. */
  readonly takesSecrets?: true
  /** Sent as the part `file` of a form. */
  readonly file?: Uint8Array<ArrayBuffer>
  /** Statuses for a standard key, a superadmin key and a key without money. */
  readonly standard: number
  readonly superadmin?: number
  readonly unpaid?: number
}

const endpoints: ReadonlyArray<Endpoint> = [
  { method: "POST", path: "/v1/chat/completions", body: chat, standard: 200, unpaid: 402 },
  { method: "POST", path: "/v1/completions", body: completion, standard: 200, unpaid: 402 },
  { method: "POST", path: "/v1/responses", body: { model: "fake", input: "hi" }, standard: 200, unpaid: 402 },
  { method: "POST", path: "/v1/embeddings", body: { model: "none", input: "hi" }, standard: 404 },
  { method: "POST", path: "/v1/audio/speech", body: speech, standard: 200, unpaid: 402 },
  { method: "GET", path: "/v1/audio/voices?model=fake-voice", standard: 200 },
  { method: "POST", path: "/v1/audio/transcriptions?model=none&sync=true", standard: 404 },
  { method: "POST", path: "/v1/audio/translations?model=none", standard: 404 },
  { method: "POST", path: `${transcriptions}&sync=true`, file, standard: 200, unpaid: 402 },
  { method: "POST", path: `${transcriptions}&stream=true`, file, standard: 200, unpaid: 402 },
  { method: "POST", path: transcriptions, file, standard: 202, unpaid: 402 },
  { method: "GET", path: "/v1/audio/transcriptions?job_id=job_transcription_0", standard: 404 },
  { method: "DELETE", path: "/v1/audio/transcriptions?job_id=job_transcription_0", standard: 404 },
  { method: "POST", path: "/v1/realtime/client_secrets", body: {}, standard: 200 },
  // Its body is no offer of a call.
  { method: "POST", path: "/v1/realtime/calls", body: {}, standard: 400, takesSecrets: true },
  {
    method: "POST",
    path: "/v1/realtime/calls/none/hangup",
    documented: "/v1/realtime/calls/{id}/hangup",
    standard: 404,
  },
  { method: "GET", path: "/v1/models", standard: 200 },
  { method: "GET", path: "/v1/models/none", documented: "/v1/models/{id}", standard: 404 },
  { method: "GET", path: "/v1/models/no/ne", documented: "/v1/models/{id}", standard: 404 },
  { method: "GET", path: "/v1/models/status", standard: 200 },
  { method: "GET", path: "/v1/usage", standard: 200 },
  { method: "GET", path: "/v1/gpu/status", standard: 403, superadmin: 200 },
  { method: "GET", path: "/v1/gpu/memory", standard: 403, superadmin: 200 },
  { method: "GET", path: "/v1/node/tree", standard: 403, superadmin: 200 },
  { method: "DELETE", path: "/v1/orgs?org=none", standard: 403, superadmin: 404 },
  { method: "DELETE", path: "/v1/orgs/users?org=none&user=none", standard: 403, superadmin: 404 },
  { method: "DELETE", path: "/v1/orgs/jobs?org=none&job_id=none", standard: 403, superadmin: 404 },
  { method: "DELETE", path: "/v1/orgs/answers?org=none", standard: 403, superadmin: 404 },
  { method: "POST", path: "/v1/models/load", body: { model_name: "none" }, standard: 403, superadmin: 404 },
  { method: "POST", path: "/v1/models/unload", body: { model_name: "none" }, standard: 403, superadmin: 404 },
  { method: "POST", path: "/v1/models/unload-all", standard: 403, superadmin: 200 },
  { method: "GET", path: "/v1/models/logs", standard: 403, superadmin: 400 },
  { method: "POST", path: "/v1/models/reload", standard: 403, superadmin: 200 },
  { method: "POST", path: "/v1/models/pull", body: { model_name: "none" }, standard: 403, superadmin: 404 },
  { method: "POST", path: "/v1/gpu/purge", body: {}, standard: 403, superadmin: 200 },
]

let node: TestRoles
const credentials: Record<string, string> = {}

const sessionOf = async (authBase: string, key: string): Promise<string> => {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${authBase}/v1/auth/session`, { method: "POST", headers })
  return ((await response.json()) as { session_token: string }).session_token
}

beforeAll(async () => {
  node = await startRoles({}, [fakeModel, fakeVoice, listener()])
  const newKey = (key: { org: string; user?: string; scope?: "superadmin" }) =>
    node.accounts((accounts) => accounts.createKey(key))
  await node.accounts((accounts) => accounts.createOrg({ name: "unpaid" }))
  const keys = {
    standard: await newKey({ org: "paid" }),
    superadmin: await newKey({ org: "paid", user: "operator", scope: "superadmin" }),
    unpaid: await newKey({ org: "unpaid" }),
    other: await newKey({ org: "other" }),
    revoked: await newKey({ org: "paid", user: "gone" }),
  }
  for (const [name, { apiKey }] of Object.entries(keys)) {
    credentials[`${name} key`] = apiKey
    credentials[`${name} session`] = await sessionOf(node.base.auth, apiKey)
  }
  await node.accounts((accounts) => accounts.revokeKey(keys.revoked.keyId))
  // The node has just used the key; it may accept it until its next check.
  const asRevoked = { headers: { authorization: `Bearer ${keys.revoked.apiKey}` } }
  await eventually(
    async () => (await fetch(`${node.base.edge}/v1/models`, asRevoked)).status === 401,
    "the key is refused",
  )
  const stored = JSON.parse(readFileSync(join(node.dataDir, "signing-keys.json"), "utf8"))
    .keys[0] as StoredKey
  const token = credentials["standard session"]!
  const claims = decodeJwt(token)
  const past = { ...claims, iat: claims.iat! - 7_200, exp: claims.exp! - 7_200 }
  const made = await fetch(`${node.base.edge}/v1/realtime/client_secrets`, {
    method: "POST",
    headers: { authorization: `Bearer ${credentials["standard key"]}` },
  })
  credentials["client secret"] = ((await made.json()) as { value: string }).value
  credentials["expired session"] = signedWith(privateKeyOf(stored), decodeProtectedHeader(token), past)
})
afterAll(() => node.stop())

const formOf = (bytes: Uint8Array<ArrayBuffer>): FormData => {
  const form = new FormData()
  form.append("file", new File([bytes], "speech.wav"))
  return form
}

const call = (endpoint: Endpoint, authorization: string | undefined) =>
  fetch(node.base.edge + endpoint.path, {
    method: endpoint.method,
    headers: authorization === undefined ? {} : { authorization },
    ...(endpoint.body === undefined ? {} : { body: JSON.stringify(endpoint.body) }),
    ...(endpoint.file === undefined ? {} : { body: formOf(endpoint.file) }),
  })

const sockets = ["/v1/completions/ws", "/v1/audio/transcriptions/ws?model=none", "/v1/realtime?model=none"]

/** Result of a handshake with this credential in its address. */
const openSocket = async (path: string, credential: string) => {
  const address = `${node.base.edge.replace("http", "ws")}${path}${path.includes("?") ? "&" : "?"}token=${credential}`
  const answer = await SocketClient.connect(address)
  if (!(answer instanceof SocketClient)) return { status: answer.status, body: answer.body }
  answer.socket.close()
  await answer.closed
  return { status: 101, body: "" }
}

describe("every endpoint", () => {
  it.each([
    ["nothing", () => undefined, "Missing bearer token"],
    ["an empty bearer", () => "Bearer ", "Missing bearer token"],
    ["another scheme", () => `Basic ${credentials["standard key"]}`, "Missing bearer token"],
    ["an unknown key", () => `Bearer svc_${"x".repeat(33)}`, "Invalid API key"],
    ["a malformed key", () => "Bearer svc_", "Invalid API key"],
    ["a revoked key", () => `Bearer ${credentials["revoked key"]}`, "Invalid API key"],
    ["a revoked key's session", () => `Bearer ${credentials["revoked session"]}`, "Invalid API key"],
    ["a word", () => "Bearer word", "Invalid token: Not enough segments"],
    [
      "a client secret",
      () => `Bearer ${credentials["client secret"]}`,
      "Client secrets open /v1/realtime only",
    ],
    ["an expired session", () => `Bearer ${credentials["expired session"]}`, "Token has expired"],
    [
      "a session that was changed",
      () => `Bearer ${credentials["standard session"]!.replace(/\.[^.]*$/, `.${"A".repeat(86)}`)}`,
      "Invalid token: Signature verification failed",
    ],
  ])("with %s is 401", async (_, authorization, detail) => {
    const isSecret = authorization() === `Bearer ${credentials["client secret"]}`
    for (const endpoint of endpoints) {
      if (isSecret && endpoint.takesSecrets === true) continue
      const response = await call(endpoint, authorization())
      expect([endpoint.path, response.status]).toEqual([endpoint.path, 401])
      expect(await response.json()).toEqual({ detail })
    }
  })

  it.each(sockets)(
    "that is a socket (%s) refuses the same credentials as the others, before the upgrade",
    async (path) => {
      for (const [credential, detail] of [
        ["", "Missing bearer token"],
        [`svc_${"x".repeat(33)}`, "Invalid API key"],
        [credentials["revoked key"]!, "Invalid API key"],
        [credentials["revoked session"]!, "Invalid API key"],
        ["word", "Invalid token: Not enough segments"],
        [credentials["expired session"]!, "Token has expired"],
      ] as const) {
        const answer = await openSocket(path, credential)
        expect([path, answer]).toEqual([path, { status: 401, body: JSON.stringify({ detail }) }])
      }
    },
  )

  it.each(["standard", "superadmin", "unpaid"] as const)(
    "that is a socket, with a %s key or its session",
    async (kind) => {
      const unloaded = { status: 404, body: '{"detail":"Model not loaded"}' }
      const unpaid = { status: 402, body: '{"detail":"Billing access denied"}' }
      for (const form of ["key", "session"]) {
        const credential = credentials[`${kind} ${form}`]!
        const answers = await Promise.all(sockets.map((path) => openSocket(path, credential)))
        expect(answers).toEqual(
          // The model is checked before money is reserved, except where a socket may use several.
          kind === "unpaid" ? [unpaid, unloaded, unpaid] : [{ status: 101, body: "" }, unloaded, unloaded],
        )
      }
    },
  )

  it("takes the header of Azure's clients where there is no bearer", async () => {
    const status = async (headers: Readonly<Record<string, string>>) => {
      const response = await fetch(`${node.base.edge}/v1/models`, { headers })
      await response.arrayBuffer()
      return response.status
    }
    const key = credentials["standard key"]!
    expect(await status({ "api-key": key })).toBe(200)
    expect(await status({ "api-key": key, authorization: "Basic none" })).toBe(200)
    expect(await status({ "api-key": key, authorization: "Bearer none" })).toBe(401)
    expect(await status({ "api-key": "none" })).toBe(401)
    const address = `${node.base.edge.replace("http", "ws")}/v1/completions/ws`
    const socket = await SocketClient.open(address, { "api-key": key })
    socket.socket.close()
  })

  it("that needs no credential takes any", async () => {
    for (const authorization of [undefined, "Bearer word", `Bearer ${credentials["revoked key"]}`]) {
      const headers = authorization === undefined ? {} : { authorization }
      const response = await fetch(`${node.base.edge}/health`, { headers })
      expect(response.status).toBe(200)
    }
  })

  it.each(["standard", "superadmin", "unpaid"] as const)("with a %s key, or its session", async (kind) => {
    for (const endpoint of endpoints) {
      for (const form of ["key", "session"]) {
        const response = await call(endpoint, `Bearer ${credentials[`${kind} ${form}`]}`)
        expect([endpoint.path, form, response.status]).toEqual([
          endpoint.path,
          form,
          endpoint[kind] ?? endpoint.standard,
        ])
        if (response.status < 400) {
          await response.arrayBuffer()
          continue
        }
        const body = (await response.json()) as { detail?: string }
        if (response.status === 403) expect(body).toEqual({ detail: "Requires the superadmin scope" })
        if (response.status === 402) expect(body).toEqual({ detail: "Billing access denied" })
      }
    }
  })

  it("answers another organization's job as it answers an unknown job", async () => {
    const submit: Endpoint = { method: "POST", path: transcriptions, file, standard: 202 }
    const accepted = await call(submit, `Bearer ${credentials["standard key"]}`)
    const { job_id } = (await accepted.json()) as { job_id: string }
    const ask = async (method: "GET" | "DELETE", credential: string, id: string) => {
      const path = `/v1/audio/transcriptions?job_id=${id}`
      const response = await call({ method, path, standard: 200 }, `Bearer ${credentials[credential]}`)
      return { status: response.status, body: await response.text() }
    }
    const unknown = { status: 404, body: '{"detail":"Job not found"}' }
    for (const method of ["GET", "DELETE"] as const) {
      for (const credential of ["other key", "other session", "unpaid key"]) {
        expect([credential, await ask(method, credential, job_id)]).toEqual([credential, unknown])
      }
      expect(await ask(method, "standard key", "job_transcription_0")).toEqual(unknown)
    }
    // The organization's own job, with any of its keys.
    for (const credential of ["standard key", "standard session", "superadmin key"]) {
      expect((await ask("GET", credential, job_id)).status).not.toBe(404)
    }
  })

  it("is in this table", async () => {
    const document = (await (await fetch(`${node.base.edge}/openapi.json`)).json()) as {
      readonly paths: Readonly<Record<string, object>>
    }
    const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const here = endpoints.map(
      ({ documented, method, path }) => `${method} ${(documented ?? path).replace(/\?.*/, "")}`,
    )
    expect(documented.filter((each) => each !== "GET /health").sort()).toEqual([...new Set(here)].sort())
  })
})

/** Every regular file under a folder. */
const filesUnder = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())

it("credentials are in no log, metric, argument or file of a node that was used with them", async () => {
  const process = await startProcess({ env: { EDGEWISE_LOG_LEVEL: "trace" } })
  try {
    const auth = /auth listening on (\S+)/.exec(process.stdout())?.[1] ?? ""
    const session = await sessionOf(auth, process.devKey)
    const operator = readFileSync(join(process.dataDir, "operator-token"), "utf8").trim()
    const canaries = [session, operator, `svc_${"c".repeat(33)}`, `canary.${"t".repeat(40)}.token`]
    for (const credential of [process.devKey, ...canaries]) {
      const headers = { authorization: `Bearer ${credential}` }
      await (await fetch(`${process.base}/v1/models`, { headers })).text()
      for (const path of ["/v1/chat/completions", "/v1/completions"]) {
        const body = JSON.stringify(path.includes("chat") ? chat : completion)
        // What a client repeats of its own must not be kept either: a credential may stand in any field.
        const repeated = { ...headers, "idempotency-key": credential.slice(0, 200), "user-agent": credential }
        await (await fetch(process.base + path, { method: "POST", headers: repeated, body })).text()
        await (
          await fetch(`${process.base}${path}?api_key=${credential}`, { method: "POST", headers, body })
        ).text()
      }
      await (await fetch(`${process.base}/v1/completions/ws?token=${credential}`)).text()
      await (await fetch(`${auth}/v1/auth/session`, { method: "POST", headers })).text()
    }
    const metrics = await (await fetch(`${process.base}/metrics`)).text()
    const commandLine = readFileSync(`/proc/${process.pid}/cmdline`, "utf8")
    process.signal("SIGTERM")
    await process.exited
    // The secret part of a key; lists may show the first eight characters.
    const secrets = [process.devKey, ...canaries].map((credential) => credential.slice(12))
    // The start prints the development key for its operator, once, and keeps it in a file of its own.
    const printed = process.stdout().replaceAll(process.devKey, "")
    for (const text of [printed, process.stderr(), metrics, commandLine])
      for (const secret of secrets) expect(text.includes(secret)).toBe(false)
    const files = filesUnder(process.dataDir).filter((path) => !path.endsWith("dev-key"))
    expect(files.some((path) => path.endsWith("store.sqlite"))).toBe(true)
    for (const path of files) {
      const bytes = readFileSync(path).toString("latin1")
      for (const secret of secrets) expect([path, bytes.includes(secret)]).toEqual([path, false])
    }
  } finally {
    await process.dispose()
  }
})

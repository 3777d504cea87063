// Bodies over their limit are 413 on every endpoint (protocol 17.1): JSON where it is taken, whatever the model, any body where none is
// taken, and uploads; the detail names the limit. Nothing is done then. On both transports.
import { Effect } from "effect"
import * as OpenApi from "effect/http-api/OpenApi"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { EdgeApi } from "#api/declared/EdgeApi.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { isLong } from "../../support/groups/Runs.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { type ApiDocument, operationsOf } from "../../support/wire/ApiDocument.ts"

const all = operationsOf(OpenApi.fromApi(EdgeApi) as unknown as ApiDocument)
const operations = all.filter(({ body }) => body?.contentType === "application/json")

/** Methods with which a client may send a body, and no body is taken. */
const bodiless = all.filter(({ body, method }) => body === undefined && method.toUpperCase() !== "GET")

/** The last one is not deployed. */
const models = ["fake", "seeing", "absent"]

const limitBytes = 8_000_000

/** Fields of every endpoint. The texts are all over the limit, and the second has more values than a body may have. */
const bodies = (model: string): ReadonlyArray<string> =>
  [JSON.stringify("x".repeat(limitBytes)), `[${"0,".repeat(limitBytes / 2)}0]`].map(
    (value) =>
      `{"model":"${model}","model_name":"${model}","messages":[{"role":"user","content":${value}}],"input":${value}}`,
  )

it("the document names the endpoints that take JSON", () => {
  expect(operations.map(({ path }) => path)).toEqual(
    expect.arrayContaining(["/v1/chat/completions", "/v1/audio/speech", "/v1/models/load", "/v1/gpu/purge"]),
  )
})

// The limit is in code that both share; RequestBodyLimits.process.test.ts is about the transports.
describe.each(isLong ? ["uws", "node"] : ["uws"])("with the transport %s", (transport) => {
  let node: TestNode
  let operator: string
  beforeAll(async () => {
    const seeing = { ...fakeModel, id: "seeing", options: { pictures: { maxPixels: 10_000 } } }
    node = await startNode({ models: [fakeModel, seeing], settings: { transport } })
    const made = Effect.flatMap(Accounts, (accounts) =>
      accounts.createKey({ org: "ops", scope: "superadmin" }),
    )
    operator = (await node.run(made)).apiKey
  })
  afterAll(() => node.stop())

  /** The limit is one for all; a body of each takes as long as the largest. */
  const some = ["/v1/chat/completions", "/v1/models/load"]
  const sent = operations.filter(({ path }) => isLong || some.includes(path))
  it.each(sent.map(({ method, path }) => [method.toUpperCase(), path] as const))(
    "%s %s",
    async (method, path) => {
      const send = async (body: RequestInit) => {
        const headers = { authorization: `Bearer ${operator}` }
        const response = await node.fetch(path, { method, headers, ...body })
        return [response.status, await response.json()]
      }
      const refused = [
        413,
        { detail: expect.stringMatching(/^body: larger than \d+ bytes( besides its pictures)?$/) },
      ]
      const whose = isLong || path === "/v1/chat/completions" ? models : models.slice(0, 1)
      for (const model of whose) {
        for (const body of bodies(model)) expect(await send({ body })).toEqual(refused)
      }
      const body = new Blob([bodies("seeing")[0]!]).stream()
      expect(await send({ body, duplex: "half" } as RequestInit)).toEqual(refused)
    },
  )

  it.each(bodiless.map(({ method, path }) => [method.toUpperCase(), path] as const))(
    "%s %s, which takes no body",
    async (method, path) => {
      const headers = { authorization: `Bearer ${operator}` }
      const named = path.replace("{id}", "none")
      const url = path.includes("transcriptions") ? `${path}?job_id=job_transcription_0` : named
      const large = await node.fetch(url, { method, headers, body: "x".repeat(limitBytes + 1) })
      expect([large.status, await large.json()]).toEqual([
        413,
        { detail: `body: larger than ${limitBytes} bytes` },
      ])
      const small = await node.fetch(url, { method, headers, body: "{}" })
      // Without its query a deletion names nothing.
      const isUnknown = path.includes("transcriptions") || path.includes("{id}")
      const status = path.startsWith("/v1/orgs") ? 400 : isUnknown ? 404 : 200
      expect(small.status).toBe(status)
    },
  )

  it("an upload, whatever its parts are", async () => {
    const headers = { authorization: `Bearer ${operator}`, "content-type": "multipart/form-data; boundary=x" }
    const body = Buffer.alloc(110_000_000, "x")
    const response = await node.fetch("/v1/audio/transcriptions", { method: "POST", headers, body })
    expect(response.status).toBe(413)
  })
})

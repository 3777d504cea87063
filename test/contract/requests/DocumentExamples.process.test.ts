// The examples of the OpenAPI document: each of them, sent as it stands, is answered by the node that gave it; and they follow the
// models that the node has.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { withExamples } from "#api/reference/Examples.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { chirp, wavBytes } from "../../support/audio/AudioFiles.ts"
import { fakeClone, fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { embeds, hears } from "./DocumentedNode.ts"

let node: TestNode
let operatorKey = ""
beforeAll(async () => {
  node = await startNode({ models: [fakeModel, fakeClone, fakeVoice, hears, embeds] })
  const made = Effect.flatMap(Accounts, (accounts) =>
    accounts.createKey({ org: "operators", scope: "superadmin" }),
  )
  operatorKey = (await node.run(made)).apiKey
})
afterAll(() => node.stop())

interface DocumentedOperation {
  readonly parameters?: ReadonlyArray<{
    readonly name: string
    readonly in: string
    readonly example?: string
  }>
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { readonly examples?: Readonly<Record<string, { readonly value: unknown }>> }>
    >
  }
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
  readonly components: { readonly securitySchemes: unknown }
}

const read = async (): Promise<Document> => (await (await node.fetch("/openapi.json")).json()) as Document

/** The request of an operation's examples; undefined where it has none. */
const requestOf = (path: string, { parameters = [], requestBody }: DocumentedOperation) => {
  const given = parameters.filter(({ example }) => example !== undefined)
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const [body] = Object.values(content?.examples ?? {})
  if (given.length === 0 && body === undefined) return undefined
  let target = path
  const query = new URLSearchParams()
  for (const { example = "", in: place, name } of given) {
    if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(example))
    else query.set(name, example)
  }
  if (type !== "multipart/form-data")
    return { target: `${target}?${query}`, body: body && JSON.stringify(body.value) }
  // A file is chosen by the reader.
  const form = new FormData()
  form.append("file", new Blob([Buffer.from(wavBytes(chirp(16_000, 16_000), 16_000, "16"))]), "audio.wav")
  return { target: `${target}?${query}`, body: form }
}

it("names a bearer token as the way to authenticate", async () => {
  expect((await read()).components.securitySchemes).toEqual({
    bearer: { type: "http", scheme: "bearer", description: expect.any(String) },
  })
})

it("has examples that this node answers", async () => {
  const { paths } = await read()
  const answered: Array<string> = []
  for (const [path, operations] of Object.entries(paths))
    for (const [method, operation] of Object.entries(operations)) {
      const request = requestOf(path, operation)
      if (request === undefined) continue
      const { body, target } = request
      const response = await node.fetch(target, {
        method: method.toUpperCase(),
        headers: {
          authorization: `Bearer ${operatorKey}`,
          ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
        },
        ...(body === undefined ? {} : { body }),
      })
      const text = await response.text()
      expect([method, path, response.status, response.ok ? "" : text]).toEqual([
        method,
        path,
        response.status,
        "",
      ])
      answered.push(`${method} ${path}`)
    }
  expect(answered.toSorted()).toEqual([
    "get /v1/audio/voices",
    "get /v1/models/logs",
    "get /v1/models/{id}",
    "post /v1/audio/speech",
    "post /v1/audio/transcriptions",
    "post /v1/chat/completions",
    "post /v1/completions",
    "post /v1/embeddings",
    "post /v1/models/load",
    "post /v1/models/unload",
    "post /v1/realtime/client_secrets",
    "post /v1/responses",
  ])
})

it("has none for kinds of models that the node lacks", () => {
  const post = { requestBody: { content: { "application/json": { schema: {} } } } }
  const document = { paths: { "/v1/chat/completions": { post }, "/v1/audio/speech": { post } } }
  const { paths } = withExamples(document, [{ id: "other", kind: "text", voices: [] }])
  expect(JSON.stringify(paths["/v1/chat/completions"])).toContain('"model":"other"')
  expect(paths["/v1/audio/speech"]).toEqual({ post })
  expect(withExamples(document, [])).toEqual(document)
})

// GET /v1/models/{id}, and ids as model hubs write them, with a slash: in paths, bodies and metrics.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { knownPaths } from "#api/EdgeRoutes.ts"
import { reservedModelIds } from "#domain/models/ModelEntry.ts"
import { headerOf, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const hubId = "Qwen/Qwen3-0.6B"
const longId = `owner/${"long-".repeat(23)}id`
let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [fakeModel, { ...fakeModel, id: hubId, options: { slots: 2 } }, { ...fakeModel, id: longId }],
  })
})
afterAll(() => node.stop())

const ask = (path: string, method = "GET") =>
  rawRequest(node.port, requestBytes(method, path, { authorization: `Bearer ${node.keys.dev}` }), {
    toHead: method === "HEAD",
  })
const bodyOf = ({ body }: { readonly body: Buffer }): unknown => JSON.parse(body.toString("utf8"))

const record = (id: string) => ({
  id,
  object: "model",
  created: 1_700_000_000,
  owned_by: "test",
  permission: [],
  root: id,
  parent: null,
  kind: "text",
  input_modalities: ["text"],
})

describe("a model by its id", () => {
  it("is its entry of the list, with a slash encoded or plain", async () => {
    const list = bodyOf(await ask("/v1/models")) as { readonly data: ReadonlyArray<unknown> }
    expect(list.data).toEqual([record("fake"), record(hubId), record(longId)])
    for (const path of [
      "Qwen/Qwen3-0.6B",
      "Qwen%2FQwen3-0.6B",
      "Qwen%2fQwen3%2D0.6B",
      "Qwen/Qwen3-0.6B?x=1",
    ]) {
      const response = await ask(`/v1/models/${path}`)
      expect([path, response.status, bodyOf(response)]).toEqual([path, 200, record(hubId)])
    }
    for (const path of [longId, encodeURIComponent(longId)]) {
      expect(bodyOf(await ask(`/v1/models/${path}`))).toEqual(record(longId))
    }
    expect(bodyOf(await ask("/v1/models/fake"))).toEqual(record("fake"))
    expect((await ask("/v1/models/fake", "HEAD")).status).toBe(200)
  })

  it("is 404 where it is not in the catalog", async () => {
    for (const path of [
      "none",
      "fake/fake",
      "Qwen",
      "Qwen3-0.6B",
      "FAKE",
      "Status",
      "%66ak",
      "..",
      "Qwen%252FQwen3-0.6B",
      "x".repeat(3_000),
      `x/${"y".repeat(3_000)}`,
    ]) {
      const response = await ask(`/v1/models/${path}`)
      expect([path, response.status, bodyOf(response)]).toEqual([path, 404, { detail: "Model not loaded" }])
    }
  })

  it("is no path where there can be no id", async () => {
    for (const path of ["", "a/b/c", "fake/", "/fake", "%", "%zz", "fake/%ff"]) {
      const response = await ask(`/v1/models/${path}`)
      expect([path, response.status, bodyOf(response)]).toEqual([path, 404, { detail: "Not Found" }])
    }
  })

  it("needs a credential", async () => {
    for (const path of ["fake", hubId, "none"]) {
      const response = await rawRequest(node.port, requestBytes("GET", `/v1/models/${path}`))
      expect([path, response.status]).toEqual([path, 401])
    }
  })

  it("takes no other method, and answers preflights", async () => {
    for (const method of ["POST", "PUT", "DELETE"]) {
      for (const path of ["fake", hubId, "Qwen%2FQwen3-0.6B", "none"]) {
        const response = await ask(`/v1/models/${path}`, method)
        expect([method, path, response.status]).toEqual([method, path, 405])
        expect(headerOf(response, "allow")).toBe("GET, HEAD, OPTIONS")
      }
    }
    const preflight = await ask(`/v1/models/${hubId}`, "OPTIONS")
    expect(preflight.status).toBe(204)
    expect(headerOf(preflight, "access-control-allow-methods")).toBe("GET, OPTIONS")
  })
})

describe("the other paths below /v1/models/", () => {
  it("keep their meaning", async () => {
    expect(bodyOf(await ask("/v1/models/status"))).toMatchObject({
      loading_status: { [hubId]: expect.any(String) },
    })
    for (const name of ["load", "unload", "unload-all"]) {
      for (const method of ["GET", "HEAD"]) {
        const response = await ask(`/v1/models/${name}`, method)
        expect([name, method, response.status]).toEqual([name, method, 405])
        expect(headerOf(response, "allow")).toBe("POST, OPTIONS")
      }
    }
  })

  it("are no ids that a catalog may use", () => {
    const names = Object.keys(knownPaths).flatMap(
      (path) => /^\/v1\/models\/([^:]+)$/.exec(path)?.slice(1) ?? [],
    )
    expect(names.length).toBeGreaterThan(3)
    for (const name of names) expect(reservedModelIds).toContain(name)
  })
})

describe("an id with a slash", () => {
  it("answers requests and stands in the answer and the metrics", async () => {
    const answer = await node.post("/v1/chat/completions", {
      model: hubId,
      messages: [{ role: "user", content: "hello" }],
    })
    expect([answer.status, ((await answer.json()) as { model: string }).model]).toEqual([200, hubId])
    const metrics = await node.metrics()
    expect(metrics.get(`edgewise_model_loaded{model="${hubId}"}`)).toBe(1)
  })

  it("has one label in the metrics with all other ids in paths", async () => {
    for (const id of ["a", "b/c", "d%2Fe"]) await ask(`/v1/models/${id}`)
    const text = await (await node.fetch("/metrics")).text()
    const routes = new Set([...text.matchAll(/route="(\/v1\/models\/[^"]*)"/g)].map(([, route]) => route))
    expect(routes).toContain("/v1/models/:id")
    for (const route of routes) expect(Object.keys(knownPaths)).toContain(route)
  })

  it("stands once in OpenAPI", async () => {
    const { paths } = (await (await node.fetch("/openapi.json")).json()) as {
      readonly paths: Readonly<
        Record<string, { readonly get?: { readonly parameters: ReadonlyArray<unknown> } }>
      >
    }
    const found = Object.keys(paths).filter((path) => path.startsWith("/v1/models/") && path.includes("{"))
    expect(found).toEqual(["/v1/models/{id}"])
    expect(paths["/v1/models/{id}"]?.get?.parameters).toMatchObject([
      { name: "id", in: "path", required: true },
    ])
  })
})

// One answer to one mistake: a parameter that is given twice, and a path with a semicolon (protocol 1.3).
import { afterAll, beforeAll, expect, it } from "vitest"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode()
})
afterAll(() => node.stop())

const get = async (path: string, method = "GET") => {
  const response = await node.fetch(path, { method, headers: { authorization: `Bearer ${node.keys.dev}` } })
  return [response.status, await response.json()]
}

it.each([
  ["GET", "/v1/audio/voices?model=a&model=b", "model"],
  ["GET", "/v1/audio/transcriptions?job_id=a&job_id=b", "job_id"],
  ["DELETE", "/v1/audio/transcriptions?job_id=a&job_id=b", "job_id"],
  ["POST", "/v1/audio/transcriptions?language=en&language=de", "language"],
  ["GET", "/v1/models/logs?after=1&model=a&after=2", "after"],
])("%s %s is refused by name", async (method, path, name) => {
  expect(await get(path, method)).toEqual([400, { detail: `${name}: must be given once` }])
})

it.each(["/v1/models;x", "/health;x", "/;"])("%s is an unknown path", async (path) => {
  expect(await get(path)).toEqual([404, { detail: "Not Found" }])
})

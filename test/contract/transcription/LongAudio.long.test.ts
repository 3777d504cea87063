// Long audio: a file's duration has no limit of its own (protocol 9.1), for jobs and for requests that wait, unless the operator sets one
// (EDGEWISE_AUDIO_HOURS), which the refusal names.
import { afterAll, beforeAll, expect, it } from "vitest"
import { constantFlac } from "../../support/audio/HostileFiles.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { post, submit, targetOf, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const hours = 6
/** 13 bytes hold 65,535 samples. */
const file = constantFlac(
  42 + 13 * Math.ceil((hours * 3_600 * 16_000) / 65_535),
  16_000,
) as Buffer<ArrayBuffer>
const ears = listener({ pieceSeconds: 30, words: ["la"] }, { id: "ears" })

let free: TestNode
let bound: TestNode
beforeAll(async () => {
  free = await startNode({ models: [ears] })
  bound = await startNode({ models: [ears], settings: { audioHours: "1" } })
})
afterAll(() => Promise.all([free?.stop(), bound?.stop()]))

it("is transcribed to its end, as a job and for a request that waits", async () => {
  const target = targetOf(free)
  const query = { model: "ears", response_format: "verbose_json" }
  const { body, status } = await untilDone(target, await submit(target, file, query))
  expect([status, body.status]).toEqual([200, "completed"])
  expect(Number(body.duration)).toBeGreaterThanOrEqual(hours * 3_600)
  const waiting = await post(free, file, { query: { ...query, sync: "true" } })
  expect(await waiting.json()).toMatchObject({ duration: body.duration })
})

it("is refused above the operator's limit, with a text that names it", async () => {
  const target = targetOf(bound)
  const detail = "file: The audio is longer than 3600 seconds"
  const { body, status } = await untilDone(target, await submit(target, file, { model: "ears" }))
  expect([status, body]).toMatchObject([400, { status: "failed" }])
  expect(JSON.stringify(body)).toContain("The audio is longer than 3600 seconds")
  const waiting = await post(bound, file, { query: { model: "ears", sync: "true" } })
  expect([waiting.status, await waiting.json()]).toEqual([400, { detail }])
})

// A long file in the background does not delay interactive requests: they share the engine window by window, and the
// interactive one goes first. Gated on counts and on a ratio of times of one run.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { clipBytes, clips, sparseWav } from "../../support/audio/SpeechClips.ts"
import {
  model,
  poll,
  post,
  submit,
  targetOf,
  untilDone,
  whisper,
} from "../../support/clients/TranscriptionClient.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

type Bytes = Uint8Array<ArrayBuffer>
const clip = clips.find(({ seconds }) => seconds < 3.5)!

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [whisper] })
  await inPerson()
})
afterAll(() => node.stop())

const inPerson = async (): Promise<number> => {
  const started = performance.now()
  const response = await post(node, clipBytes(clip) as Bytes, { query: { model, sync: "true" } })
  expect(response.status).toBe(200)
  await response.text()
  return performance.now() - started
}
const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!

describe("a file of ten minutes as a job", () => {
  it("lets files of three seconds through, one after the other", async () => {
    const alone: Array<number> = []
    for (let i = 0; i < 7; i++) alone.push(await inPerson())

    const target = targetOf(node)
    // Two, so that all of the engine's share for background work is in use.
    const jobs = [
      await submit(target, sparseWav(600) as Bytes),
      await submit(target, sparseWav(600) as Bytes),
    ]
    const running = async () =>
      (await Promise.all(jobs.map((id) => poll(target, id)))).every(
        ({ body }) => body.status === "processing",
      )
    while (!(await running())) await new Promise((resolve) => setTimeout(resolve, 5))
    const beside: Array<number> = []
    for (let i = 0; i < 7; i++) beside.push(await inPerson())
    expect(await running(), "the jobs are at it all the while").toBe(true)
    // At most two windows of the jobs run when a request comes, and none begins until it is served.
    const ratio = median(beside) / median(alone)
    console.log(`a 3 s file beside two jobs of 10 minutes takes ${ratio.toFixed(1)} times as long as alone`)
    expect(ratio).toBeLessThan(6)
    for (const id of jobs) expect((await untilDone(target, id)).status).toBe(200)
  })
})

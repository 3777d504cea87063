// Spoken answers of the built-in voice, interrupted at random moments: the conversation keeps the words that were heard.
import { afterAll, beforeAll, expect, it } from "vitest"
import { listener } from "../../support/clients/LiveClient.ts"
import { runs } from "../../support/groups/Runs.ts"
import { presetModel } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { interrupted, judged } from "./Interruptions.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, presetModel] })
  await untilLoaded(node, "listener", "fake", "tts-82m")
})
afterAll(() => node.stop())

it.each([
  ["truncate", 0],
  ["speech", 250],
] as const)("by %s keep no unheard word and lose no heard one, within %i ms", async (how, withinMs) => {
  const cuts = await Promise.all(
    Array.from({ length: runs(3, 5) }, (_, at) => interrupted(node, at, 300 + at * 430, how)),
  )
  for (const cut of cuts) {
    expect(cut.told.map(({ word }) => word).join(" ")).toBe(
      cut.text.split(" ").slice(0, cut.told.length).join(" "),
    )
    const { isPrefix, lost, offMs, unheard } = judged(cut)
    expect({ ...cut, isPrefix }).toMatchObject({ isPrefix: true })
    expect(unheard).toBeLessThanOrEqual(1)
    expect(lost).toBeLessThanOrEqual(1)
    expect({ ...cut, isNear: offMs <= withinMs }).toMatchObject({ isNear: true })
    if (how === "truncate") {
      expect(cut.cutMs).toBe(cut.playedMs)
      expect(unheard).toBe(0)
    }
  }
})

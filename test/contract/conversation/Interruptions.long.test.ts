// 200 interruptions of the built-in voice at random moments, half of them with a `truncate` of the client, half by speech alone.
import { afterAll, beforeAll, expect, it } from "vitest"
import { listener } from "../../support/clients/LiveClient.ts"
import { presetModel } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { type Interruption, interrupted, judged } from "./Interruptions.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, presetModel] })
  await untilLoaded(node, "listener", "fake", "tts-82m")
})
afterAll(() => node.stop())

const atOnce = 5

it.each(["truncate", "speech"] as const)("100 by %s keep what was heard", async (how) => {
  const cuts: Array<Interruption> = []
  for (let seed = 0; seed < 100; seed += atOnce) {
    const next = Array.from({ length: atOnce }, (_, at) =>
      interrupted(node, seed + at, 100 + (((seed + at) * 2_654_435_761) % 4_000), how),
    )
    cuts.push(...(await Promise.all(next)))
  }
  const results = cuts.map(judged)
  const most = (of: (result: ReturnType<typeof judged>) => number) => Math.max(...results.map(of))
  const off = results.map(({ offMs }) => offMs).sort((a, b) => a - b)
  console.log(
    `${how}: unheard words at most ${most(({ unheard }) => unheard)}, in ${results.filter(({ unheard }) => unheard > 0).length} of ${results.length}; lost words at most ${most(({ lost }) => lost)}, in ${results.filter(({ lost }) => lost > 0).length}; off by at most ${Math.round(off.at(-1)!)} ms, in 95 of 100 by at most ${Math.round(off[94]!)} ms`,
  )
  expect(results.every(({ isPrefix }) => isPrefix)).toBe(true)
  expect(most(({ unheard }) => unheard)).toBeLessThanOrEqual(how === "truncate" ? 0 : 1)
  expect(most(({ lost }) => lost)).toBeLessThanOrEqual(how === "truncate" ? 0 : 1)
  expect(most(({ offMs }) => offMs)).toBeLessThanOrEqual(how === "truncate" ? 0 : 250)
  if (how === "truncate") expect(cuts.map(({ cutMs }) => cutMs)).toEqual(cuts.map(({ playedMs }) => playedMs))
})

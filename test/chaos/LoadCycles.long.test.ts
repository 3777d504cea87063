// Built-in models, and one that takes pictures, loaded and unloaded again and again on one node: every process ends, what a load
// costs does not grow, and the node's own memory does not grow. `npm run bench -- cycles` does a hundred of them.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { residentBytesOf } from "#actors/device/ResidentMemory.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { toyFiles } from "../engines/llama/vision/Toys.ts"
import { builtInModel } from "../support/nodes/BuiltInModels.ts"
import { startNode, type TestNode } from "../support/nodes/TestNode.ts"
import { temporaryDir } from "../support/process/TemporaryDir.ts"

const demand = { runtime: { load: "demand" } }
/** Cycles by model: the text models are the quickest to load. */
const builtIn = { "llm-3.5-27b": 12, "tts-82m": 4, "stt-large-v3-turbo": 4 }
const cycles = { ...builtIn, seeing: 12 }

const folder = temporaryDir()

let node: TestNode
beforeAll(async () => {
  const { mmproj, weights } = await toyFiles(folder.path, "toy-qwen")
  const seeing = {
    id: "seeing",
    adapter: "llama-gguf",
    files: { weights: { source: weights }, mmproj: { source: mmproj } },
    options: { contextTokens: 1_024, slots: 4 },
    ...demand,
  }
  node = await startNode({ models: [...Object.keys(builtIn).map((id) => builtInModel(id, demand)), seeing] })
})
afterAll(async () => {
  await node.stop()
  folder.remove()
})

interface Cycle {
  readonly residentBytes: number
  readonly freedBytes: number
  readonly unloadToFreedMs: number
}

/** One load and unload; the process is gone when the unload answers. */
const cycle = (id: string): Promise<Cycle> =>
  node.run(
    Effect.gen(function* () {
      const model = (yield* ModelRegistry).model(id)!
      yield* model.load(false)
      const { pid } = model.view().host!.gauges()
      const residentBytes = residentBytesOf(pid!)
      const { freedBytes, was } = yield* model.unload
      expect([was, residentBytesOf(pid!)]).toEqual([true, 0])
      expect(() => process.kill(pid!, 0)).toThrow("ESRCH")
      const { unloadToFreedMs } = model.view().timings
      return { residentBytes, freedBytes, unloadToFreedMs: unloadToFreedMs! }
    }),
  )

it("gives everything back, again and again", async () => {
  const all = await Promise.all(
    Object.entries(cycles).map(async ([id, times]) => {
      const seen: Array<Cycle> = []
      for (let i = 0; i < times; i++) seen.push(await cycle(id))
      return [id, seen] as const
    }),
  )
  for (const [id, seen] of all) {
    const second = seen[1]!.residentBytes
    const share = seen.at(-1)!.residentBytes / second
    expect([id, share]).toEqual([id, expect.toSatisfy((ratio: number) => ratio > 0.9 && ratio < 1.1)])
    for (const { freedBytes, unloadToFreedMs } of seen) {
      expect(freedBytes).toBeGreaterThan(0.9 * second)
      expect(unloadToFreedMs).toBeGreaterThan(0)
    }
  }
})

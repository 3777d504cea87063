// The CPU threads that engines get, by catalog entry and machine, and which engines get a new limit when models begin to work.
import { describe, expect, it } from "vitest"
import { type Kept, threadTerms } from "#actors/model/ThreadTerms.ts"
import { keptResults } from "#actors/threads/KeptResults.ts"
import { ThreadLedger } from "#actors/threads/ThreadLedger.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import type { MachineCores } from "#domain/threads/MachineCores.ts"
import type { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { fakeDeployment } from "../../support/nodes/FakeNode.ts"

const machine = (hardwareThreads: number, cores = hardwareThreads): MachineCores => ({
  hardwareThreads,
  cores,
  quota: undefined,
})

const deployment = (
  changes: {
    readonly adapter?: string
    readonly threads?: number
    readonly options?: Readonly<Record<string, unknown>>
    readonly sizeBytes?: number
    readonly sha256?: string
  } = {},
): Deployment => {
  const fake = fakeDeployment()
  const { adapter = "llama-gguf", options = {}, sha256 = "00", sizeBytes = 5e8, threads } = changes
  return {
    ...fake,
    sizeBytes,
    files: { weights: "/models/some.gguf" },
    versions: { weights: { sizeBytes, modifiedMs: 1, sha256 } },
    entry: {
      ...fake.entry,
      adapter,
      options,
      runtime: { ...fake.entry.runtime, threads: threads ?? "auto" },
    },
  }
}

const none: Kept = { threads: keptResults(), costs: keptResults() }
const specOf = (one: Deployment, on: MachineCores, results = none) => threadTerms(one, on, results).spec

describe("CPU threads of a load", () => {
  it("offers large weights one, two, … threads, and keeps the result by weights and options", () => {
    const terms = threadTerms(deployment(), machine(8, 4), none)
    expect(terms.spec).toEqual({ threads: 8, trial: { counts: [1, 2, 4, 8], otherwise: 4 } })
    const keyOf = (one: Deployment, on = machine(8, 4)) => threadTerms(one, on, none).key
    expect(keyOf(deployment())).toBe(terms.key)
    expect(keyOf(deployment({ sha256: "01" }))).not.toBe(terms.key)
    expect(keyOf(deployment({ options: { slots: 2 } }))).not.toBe(terms.key)
    expect(keyOf(deployment(), machine(8))).not.toBe(terms.key)
  })

  it("measures ONNX engines once for each machine", () => {
    const keyOf = (adapter: string, sha256: string) =>
      threadTerms(deployment({ adapter, sha256 }), machine(4), none).key
    expect(keyOf("whisper-hf-onnx", "00")).toBe(keyOf("kokoro-onnx", "01"))
    expect(keyOf("whisper-hf-onnx", "00")).not.toBe(keyOf("llama-gguf", "00"))
  })

  it("uses a kept result without measuring again", () => {
    const kept: ThreadChoice = { source: "measured", works: [{ tokens: 1, threads: 2, ms: {} }] }
    const { key = "" } = threadTerms(deployment(), machine(4), none)
    const terms = threadTerms(deployment(), machine(4), { ...none, threads: keptResults([[key, kept]]) })
    expect(terms.spec.trial?.kept).toEqual({ ...kept, source: "kept" })
    expect(terms.key).toBeUndefined()
  })

  it.each<[string, Parameters<typeof deployment>[0], number]>([
    ["small weights", { sizeBytes: 1e6 }, 1],
    ["a GPU", { options: { gpu: "auto" } }, 4],
    ["CUDA for ONNX", { adapter: "kokoro-onnx", options: { ep: "cuda" } }, 4],
    ["an adapter that computes nothing", { adapter: "fake" }, 1],
  ])("measures nothing for %s", (_name, changes, threads) => {
    const { key, spec } = threadTerms(deployment(changes), machine(4), none)
    expect(spec).toEqual({ threads, trial: { counts: [threads], otherwise: threads } })
    expect(key).toBeUndefined()
  })

  it("chooses nothing on one core", () =>
    expect(specOf(deployment(), machine(1)).trial).toEqual({ counts: [1], otherwise: 1 }))

  it("gives an engine the durations of calls that one with the same weights, options and threads has measured", () => {
    const costs: CallCosts = { prompt: [[8, 20]], replies: [[1, 8]] }
    const { costsKey = "" } = threadTerms(deployment({ threads: 2 }), machine(4), none)
    const results = { ...none, costs: keptResults([[costsKey, costs]]) }
    expect(threadTerms(deployment({ threads: 2 }), machine(4), results).spec.costs).toEqual(costs)
    for (const other of [
      deployment(),
      deployment({ threads: 3 }),
      deployment({ threads: 2, sha256: "01" }),
      deployment({ threads: 2, options: { slots: 2 } }),
    ])
      expect(threadTerms(other, machine(4), results).spec.costs).toBeUndefined()
    expect(threadTerms(deployment({ threads: 2 }), machine(3), results).spec.costs).toBeUndefined()
    expect(threadTerms(deployment({ adapter: "kokoro-onnx" }), machine(4), none).costsKey).toBeUndefined()
  })

  it("uses the catalog's number up to the machine's number of cores, and reports the number that it did not use", () => {
    expect(threadTerms(deployment({ threads: 3 }), machine(4), none)).toMatchObject({
      spec: { threads: 3 },
      key: undefined,
      problem: undefined,
    })
    const { problem, spec } = threadTerms(deployment({ threads: 64 }), machine(1), none)
    expect(spec).toEqual({ threads: 1 })
    expect(problem).toBe("runtime.threads: 64, and this process may use 1 CPU thread; 1 will be used")
  })
})

describe("models that work at the same time", () => {
  it("get their smaller share before the other model begins, and all threads when they work alone again", () => {
    const ledger = new ThreadLedger(machine(8))
    const told: Array<string> = []
    const [text, live] = [
      ledger.join((most) => told.push(`text ${most}`)),
      ledger.join((most) => told.push(`live ${most}`)),
    ]
    text.works("interactive")
    expect(told).toEqual([])
    live.works("live")
    expect(told).toEqual(["text 2", "live 6"])
    expect(ledger.inUse()).toBe(8)
    live.works(undefined)
    expect(told.slice(2)).toEqual(["text 8"])
    live.wants(2)
    live.works("live")
    expect(told.slice(3)).toEqual(["text 6", "live 2"])
    live.leave()
    live.works(undefined)
    expect(told.slice(5)).toEqual(["text 8"])
    expect(ledger.inUse()).toBe(8)
  })
})

// The pure rules of devices: which model is evicted, which level memory pressure has, where a model wants to be
// computed.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Evictable, victimsOf } from "#domain/models/Eviction.ts"
import { type MemoryLevel, memoryLevels, nextLevel } from "#domain/models/MemoryLevel.ts"
import { placementOf } from "#domain/models/Placement.ts"
import { fakeDeployment } from "../../support/nodes/FakeNode.ts"

const evictable = fc.record({
  id: fc.uuid(),
  sizeBytes: fc.integer({ min: 1, max: 1_000 }),
  reloadMs: fc.nat(10_000),
})
const sum = (list: ReadonlyArray<Evictable>) => list.reduce((total, { sizeBytes }) => total + sizeBytes, 0)

describe("eviction", () => {
  it("frees enough, and no model in vain", () => {
    fc.assert(
      fc.property(
        fc.array(evictable, { maxLength: 8 }),
        fc.integer({ min: 1, max: 4_000 }),
        (models, needed) => {
          const victims = victimsOf(models, needed)
          if (victims === undefined) {
            expect(sum(models)).toBeLessThan(needed)
            return
          }
          expect(sum(victims)).toBeGreaterThanOrEqual(needed)
          for (const spared of victims) {
            expect(sum(victims.filter((one) => one !== spared))).toBeLessThan(needed)
          }
        },
      ),
    )
  })

  it("takes the cheapest to load again first", () => {
    const model = (id: string, sizeBytes: number, reloadMs: number) => ({ id, sizeBytes, reloadMs })
    const models = [model("slow", 500, 9_000), model("quick", 300, 100), model("middling", 300, 2_000)]
    const chosen = (needed: number) => victimsOf(models, needed)?.map(({ id }) => id)
    expect(chosen(200)).toEqual(["quick"])
    expect(chosen(500)).toEqual(["quick", "middling"])
    expect(chosen(1_100)).toEqual(["quick", "middling", "slow"])
    expect(chosen(1_101)).toBeUndefined()
  })
})

describe("the memory level", () => {
  const walk = (shares: ReadonlyArray<number>): ReadonlyArray<MemoryLevel> => {
    let rung: MemoryLevel = "calm"
    return shares.map((share) => {
      rung = nextLevel(rung, share)
      return rung
    })
  }

  it("climbs at 85, 92 and 95 % and descends three points lower", () => {
    expect(walk([0.849, 0.85, 0.919, 0.92, 0.949, 0.95, 1.2])).toEqual([
      "calm",
      "lean",
      "lean",
      "busy",
      "busy",
      "full",
      "full",
    ])
    expect(walk([0.96, 0.93, 0.921, 0.919, 0.891, 0.889, 0.821, 0.819])).toEqual([
      "full",
      "full",
      "full",
      "busy",
      "busy",
      "lean",
      "lean",
      "calm",
    ])
    expect(walk([0.3, 0.99, 0.3])).toEqual(["calm", "full", "calm"])
  })

  it("does not waver: readings within three points of each other change the level once at most per boundary", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.array(fc.double({ min: 0, max: 0.0299, noNaN: true }), { minLength: 2, maxLength: 50 }),
        (base, waverings) => {
          const path = walk(waverings.map((wavering) => base + wavering))
          // It may rise, but never falls back.
          const steps = path.map((rung) => memoryLevels.indexOf(rung))
          for (let i = 1; i < steps.length; i++) expect(steps[i]!).toBeGreaterThanOrEqual(steps[i - 1]!)
        },
      ),
    )
  })

  it("is never below what a reading asks for", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...memoryLevels),
        fc.double({ min: 0, max: 2, noNaN: true }),
        (from, share) => {
          expect(memoryLevels.indexOf(nextLevel(from, share))).toBeGreaterThanOrEqual(
            memoryLevels.indexOf(nextLevel("calm", share)),
          )
        },
      ),
    )
  })
})

describe("placement", () => {
  const entry = (adapter: string, options: Record<string, unknown>) => ({
    ...fakeDeployment({ options }).entry,
    adapter,
  })

  it("requests a GPU where the entry says so", () => {
    expect(placementOf(entry("llama-gguf", {}))).toBe("host")
    for (const gpu of ["auto", "cuda"]) expect(placementOf(entry("llama-gguf", { gpu }))).toBe("nvidia")
    for (const gpu of ["off", "vulkan", "metal"])
      expect(placementOf(entry("llama-gguf", { gpu }))).toBe("host")
    expect(placementOf(entry("kokoro-onnx", { ep: "cuda" }))).toBe("nvidia")
    expect(placementOf(entry("kokoro-onnx", { ep: "cpu" }))).toBe("host")
  })
})

import fc from "fast-check"
import { expect, it } from "vitest"
import { type ModelEvent, type ModelStatus, next } from "#actors/model/ModelStatus.ts"

const events: ReadonlyArray<ModelEvent> = ["load", "ready", "crashed", "gave-up", "unloaded"]

it("allows the states of a model in their order", () => {
  const walk = (...path: ReadonlyArray<ModelEvent>) =>
    path.reduce<ModelStatus | undefined>((at, event) => (at === undefined ? at : next(at, event)), "unloaded")
  expect(walk("load")).toBe("loading")
  expect(walk("load", "ready")).toBe("loaded")
  expect(walk("load", "ready", "crashed")).toBe("loading")
  expect(walk("load", "ready", "crashed", "ready")).toBe("loaded")
  expect(walk("load", "gave-up")).toBe("failed")
  expect(walk("load", "gave-up", "load")).toBe("loading")
  expect(walk("load", "ready", "unloaded")).toBe("unloaded")
})

it("never becomes loaded before an engine is ready", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...events)), (path) => {
      let status: ModelStatus = "unloaded"
      for (const event of path) {
        const after: ModelStatus | undefined = next(status, event)
        if (after === undefined) continue
        if (after === "loaded" && status !== "loaded") expect(event).toBe("ready")
        if (event === "unloaded") expect(after).toBe("unloaded")
        status = after
      }
    }),
  )
})

it("can be unloaded from every state", () => {
  for (const status of ["unloaded", "loading", "loaded", "failed"] as const) {
    expect(next(status, "unloaded")).toBe("unloaded")
  }
})

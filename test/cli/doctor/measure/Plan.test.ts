// Which models are measured, and with which texts.
import { Effect, Schema } from "effect"
import { expect, it } from "vitest"
import { groupsOf, loadMs, shareMs } from "#cli/doctor/measure/Plan.ts"
import { promptOf, speechOf } from "#cli/doctor/measure/Prompts.ts"
import { ModelEntry } from "#domain/models/ModelEntry.ts"

const deployment = (id: string, given: Readonly<Record<string, unknown>> = {}) => {
  const entry = Effect.runSync(
    Schema.decodeUnknownEffect(ModelEntry)({
      id,
      kind: "text",
      adapter: "fake",
      ownedBy: "test",
      created: 1,
      files: {},
      price: {},
      ...given,
    }),
  )
  return { entry, files: {}, sizeBytes: 1 }
}

it("measures models of the same weights and settings once, the one that a start loads", () => {
  const groups = groupsOf([
    deployment("a"),
    deployment("b", { options: { slots: 2 } }),
    deployment("c", { runtime: { load: "start" } }),
    deployment("d", { runtime: { threads: 2 } }),
  ])
  expect(groups.map(({ measured, same }) => [measured.entry.id, same])).toEqual([
    ["c", ["a"]],
    ["b", []],
    ["d", []],
  ])
})

it("shares the time that is left, and leaves some for every model in a load", () => {
  expect([shareMs(30_000, 3), shareMs(30_000, 1)]).toEqual([10_000, 30_000])
  expect(loadMs(30_000, 4)).toBe(24_000)
  expect(loadMs(1_000, 4)).toBe(1_500)
})

it("makes prompts of any length that share no beginning", () => {
  const prompts = Array.from({ length: 200 }, (_, at) => promptOf(`p16-${at}`, 400))
  expect(new Set(prompts.map((prompt) => prompt.slice(0, 12))).size).toBe(200)
  for (const prompt of prompts) expect(Math.abs(prompt.length - 400)).toBeLessThan(15)
  expect(promptOf("a", 50)).toBe(promptOf("a", 50))
  expect(speechOf(450).length).toBeLessThanOrEqual(450)
  expect(speechOf(1).length).toBeGreaterThan(20)
})

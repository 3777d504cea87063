// The stored measurements of CPU threads and calls: they are read after a start, are bounded, and a broken file is one log line.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Logger } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { KeptCosts, type KeptResults, KeptThreads, keyOf, mostResults } from "#actors/threads/KeptResults.ts"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import type { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { keptMeasurements } from "#store/files/ResultFiles.ts"

/** A write to the disk of a busy machine. */
const patience = { timeout: 60_000 }

let dir = ""
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "edgewise-threads-"))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const choice = (threads: number): ThreadChoice => ({
  source: "measured",
  works: [{ tokens: 1, threads, ms: { 1: 20, 2: 11 } }],
})

const lines: Array<unknown> = []
const openBoth = (): Promise<{
  readonly threads: KeptResults<ThreadChoice>
  readonly costs: KeptResults<CallCosts>
}> => {
  lines.length = 0
  const logger = Logger.layer([Logger.make(({ message }) => void lines.push(message))])
  return Effect.runPromise(
    Effect.gen(function* () {
      return { threads: yield* KeptThreads, costs: yield* KeptCosts }
    }).pipe(Effect.provide(keptMeasurements(dir)), Effect.provide(logger)),
  )
}
const open = async (): Promise<KeptResults<ThreadChoice>> => (await openBoth()).threads
const file = () => join(dir, "threads.json")

it("finds at the next start what was kept at the last one", async () => {
  const first = await open()
  expect(first.find(keyOf("a"))).toBeUndefined()
  first.keep(keyOf("a"), choice(2))
  first.keep(keyOf("b"), choice(1))
  first.keep(keyOf("a"), choice(4))
  await vi.waitFor(() => expect(readFileSync(file(), "utf8")).toContain('"threads":4'), patience)
  const second = await open()
  expect(second.find(keyOf("a"))).toEqual(choice(4))
  expect(second.find(keyOf("b"))).toEqual(choice(1))
  expect(readdirSync(dir)).toEqual(["threads.json"])
  expect(lines).toEqual([])
})

describe("durations of calls", () => {
  const costs: CallCosts = {
    prompt: [
      [8, 20.5],
      [512, 480],
    ],
    replies: [[1, 8.2]],
  }
  const costFile = () => join(dir, "costs.json")

  it("are found at the next start, in a file that only the node reads, beside that of the threads", async () => {
    const first = await openBoth()
    first.costs.keep(keyOf("a"), costs)
    await vi.waitFor(() => expect(readdirSync(dir)).toEqual(["costs.json"]), patience)
    expect(statSync(costFile()).mode & 0o777).toBe(0o600)
    const second = await openBoth()
    expect(second.costs.find(keyOf("a"))).toEqual(costs)
    expect(second.costs.find(keyOf("b"))).toBeUndefined()
    expect(second.threads.find(keyOf("a"))).toBeUndefined()
    expect(lines).toEqual([])
  })

  const stored = (changed: unknown) =>
    JSON.stringify({ version: 1, results: [[keyOf("a"), { ...costs, prompt: changed }]] })
  it.each([
    ["cut", stored(costs.prompt).slice(0, -9)],
    ["another version", JSON.stringify({ version: 2, results: [] })],
    ["no time at all", stored([[8, 0]])],
    ["a negative size", stored([[-8, 20]])],
    ["more sizes than there are", stored(Array.from({ length: 40 }, (_, at) => [at + 1, 1]))],
    ["a duration without end", stored([[8, 1]]).replace("[8,1]", "[8,1e999]")],
  ])("of a broken file are ignored with one line and measured again: %s", async (_name, text) => {
    writeFileSync(costFile(), text)
    const { costs: kept } = await openBoth()
    expect(lines).toHaveLength(1)
    expect(kept.find(keyOf("a"))).toBeUndefined()
    kept.keep(keyOf("a"), { ...costs, replies: [[1, 33.25]] })
    await vi.waitFor(() => expect(readFileSync(costFile(), "utf8")).toContain("33.25"), patience)
    await openBoth()
    expect(lines).toEqual([])
  })
})

it("keeps no more than its limit, the newest", async () => {
  const results = await open()
  for (let n = 0; n < mostResults + 10; n++) results.keep(keyOf(n), choice(1))
  expect(results.find(keyOf(9))).toBeUndefined()
  expect(results.find(keyOf(10))).toBeDefined()
  await vi.waitFor(
    () => expect(JSON.parse(readFileSync(file(), "utf8")).results).toHaveLength(mostResults),
    patience,
  )
})

it.each([
  ["no JSON", "{"],
  ["another version", '{"version":2,"results":[]}'],
  [
    "a count of 0",
    `{"version":1,"results":[["${keyOf(1)}",{"source":"measured","works":[{"threads":0,"ms":{}}]}]]}`,
  ],
  ["no works", `{"version":1,"results":[["${keyOf(1)}",{"source":"measured","works":[]}]]}`],
  ["too large", `"${"x".repeat(300_000)}"`],
])("ignores a broken file with one line, and replaces it: %s", async (_name, text) => {
  writeFileSync(file(), text)
  const results = await open()
  expect(lines).toHaveLength(1)
  expect(results.find(keyOf(1))).toBeUndefined()
  results.keep(keyOf(1), choice(2))
  await vi.waitFor(
    () =>
      expect(JSON.parse(readFileSync(file(), "utf8"))).toEqual({
        version: 1,
        results: [[keyOf(1), choice(2)]],
      }),
    patience,
  )
})

it("goes on without the file where it cannot be written, and says so once", async () => {
  const results = await open()
  rmSync(dir, { recursive: true })
  results.keep(keyOf(1), choice(2))
  await vi.waitFor(() => expect(lines).toHaveLength(1), patience)
  results.keep(keyOf(2), choice(2))
  expect(results.find(keyOf(1))).toEqual(choice(2))
})

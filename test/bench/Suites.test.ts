// Every section of every suite can be asked for alone, and the page of the benches names it.
import { readFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Section } from "#harness/report/Result.ts"
import { type SuiteCommand, suites } from "../../bench/run/Suites.ts"
import { suite } from "../../bench/support/Suite.ts"

const page = readFileSync(new URL("../../bench/README.md", import.meta.url), "utf8")

const rows = Object.entries<SuiteCommand>(suites).flatMap(([name, { sized, suite: plain }]) => [
  { name, sections: plain.sections },
  ...(sized === undefined ? [] : sized.sizes.map((size) => ({ name, sections: sized.of(size).sections }))),
])

it("every suite has sections, and bench/README.md names each of them", () => {
  expect(rows.length).toBeGreaterThan(14)
  for (const { name, sections } of rows) {
    expect([name, sections.length > 0]).toEqual([name, true])
    for (const section of sections)
      expect([name, section, page.includes(`\`${section}\``)]).toEqual([name, section, true])
  }
})

const started: Array<string> = []
const found = (title: string) =>
  Effect.sync(() => {
    started.push(title)
    return { title, method: "", figures: [] }
  })
const example = suite({
  name: "example",
  plans: { full: { rounds: 7 }, quick: { rounds: 1 } },
  start: () => Effect.succeed("stage"),
  sections: {
    first: (stage, { rounds }) => found(`first ${stage} ${rounds}`),
    second: () => Effect.map(found("second"), (one) => [one, one]),
    rare: () => found("rare"),
  },
  onlyNamed: ["rare"],
})

const run = (section: string | undefined, quick = false) =>
  Effect.gen(function* () {
    started.length = 0
    const measured: Array<Section> = []
    const options = { quick, profileDir: undefined, threads: undefined, section }
    yield* example.run(options, (one) => measured.push(one))
    return { started: [...started], counts: measured.map(({ name, parts }) => [name, parts.length]) }
  }).pipe(Effect.scoped)

it.effect("a section that is named runs alone; without a name all run but those that must be named", () =>
  Effect.gen(function* () {
    expect(yield* run(undefined)).toEqual({
      started: ["first stage 7", "second"],
      counts: [
        ["first", 1],
        ["second", 2],
      ],
    })
    for (const section of example.sections) expect((yield* run(section)).counts).toHaveLength(1)
    expect((yield* run("first", true)).started).toEqual(["first stage 1"])
    expect((yield* run("rare")).started).toEqual(["rare"])
    const failure = yield* Effect.flip(run("other"))
    expect(failure.message).toBe("bench example: --section other: here it is one of first, second, rare")
  }),
)

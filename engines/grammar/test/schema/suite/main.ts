// Measures the rules against a local copy of the public JSON-Schema-Test-Suite, which is not part of this repository:
//
//   JSON_SCHEMA_SUITE=/path/to/JSON-Schema-Test-Suite node engines/grammar/test/schema/suite/main.ts [--verbose]
//
// For each group of draft 2020-12, strict and not: refused (a problem with a path), exact (every instance is treated as
// the suite says), narrower (a valid instance is no sentence, so a model cannot write it), or wider (an invalid instance
// is a sentence). A strict group must never be wider.

import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Json } from "../../../Json.ts"
import { printed } from "../../../schema/JsonText.ts"
import { schemaRules } from "../../../schema/SchemaRules.ts"
import { isSentence } from "../Recognizer.ts"

interface Group {
  readonly description: string
  readonly schema: Json
  readonly tests: ReadonlyArray<{
    readonly description: string
    readonly data: Json
    readonly valid: boolean
  }>
}

type Verdict = "exact" | "narrower" | "refused" | "wider"

const verdictOf = (group: Group, strict: boolean, say: (line: string) => void): Verdict => {
  const made = schemaRules(group.schema, { strict, notation: "compact", prefix: "s" })
  const mode = strict ? "strict" : "open"
  if ("problem" in made) {
    say(`${mode} refused: ${made.problem.path}: ${made.problem.detail}`)
    return "refused"
  }
  let verdict: Verdict = "exact"
  for (const test of group.tests) {
    const sentence = isSentence(made.rules, printed(test.data, "compact"))
    if (sentence === test.valid) continue
    say(
      `${mode} ${sentence ? "WIDER" : "narrower"}: ${test.description}: ${printed(test.data, "compact").slice(0, 80)}`,
    )
    if (sentence) verdict = "wider"
    else if (verdict === "exact") verdict = "narrower"
  }
  return verdict
}

const suite = process.env.JSON_SCHEMA_SUITE
if (suite === undefined) throw new Error("set JSON_SCHEMA_SUITE to a local copy of JSON-Schema-Test-Suite")
const verbose = process.argv.includes("--verbose")
const folder = join(suite, "tests", "draft2020-12")
const files = [
  ...readdirSync(folder).filter((name) => name.endsWith(".json")),
  ...readdirSync(join(folder, "optional", "format")).map((name) => join("optional", "format", name)),
  "optional/ecmascript-regex.json",
  "optional/non-bmp-regex.json",
  "optional/bignum.json",
]
const modes = ["strict", "open"] as const
const verdicts = ["exact", "narrower", "refused", "wider"] as const
const cells = (counts: ReadonlyMap<string, number>) =>
  modes.map((mode) =>
    verdicts.map((verdict) => String(counts.get(`${mode} ${verdict}`) ?? 0).padStart(9)).join(""),
  )
console.log(`${"".padEnd(44)}  strict${"".padEnd(34)} not strict`)
console.log(`${"file".padEnd(44)}${[...verdicts, ...verdicts].map((name) => name.padStart(9)).join("")}`)
const total = new Map<string, number>()
for (const file of files.sort()) {
  const groups = JSON.parse(readFileSync(join(folder, file), "utf8")) as ReadonlyArray<Group>
  const counts = new Map<string, number>()
  for (const group of groups) {
    const lines: Array<string> = []
    for (const mode of modes) {
      const key = `${mode} ${verdictOf(group, mode === "strict", (line) => lines.push(line))}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
      total.set(key, (total.get(key) ?? 0) + 1)
    }
    if (verbose) for (const line of lines) console.log(`    ${file} | ${group.description} | ${line}`)
  }
  console.log(`${file.padEnd(44)}${cells(counts).join("")}`)
}
console.log(`${"all".padEnd(44)}${cells(total).join("")}`)

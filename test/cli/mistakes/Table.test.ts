// The table of operators' mistakes, and the page of the documentation, which is the same table.
import { readFileSync, writeFileSync } from "node:fs"
import { expect, it } from "vitest"
import { operatorMistakes, page } from "./Table.ts"

it("has 40 mistakes and more, each another, of every category", () => {
  expect(operatorMistakes.length).toBeGreaterThanOrEqual(40)
  expect(new Set(operatorMistakes.map(({ category, mistake }) => category + mistake)).size).toBe(
    operatorMistakes.length,
  )
  for (const { line } of operatorMistakes) expect(line.length).toBeGreaterThan(20)
})

it("docs/operator-mistakes.md is this table", () => {
  const file = new URL("../../../docs/operator-mistakes.md", import.meta.url)
  if (process.env.WRITE_DOCS === "1") writeFileSync(file, page())
  expect(readFileSync(file, "utf8")).toBe(page())
})

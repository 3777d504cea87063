// The results of the evaluation, which the model cards quote, are those of the weights that are shipped.
import { readFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { keptResults } from "../../bench/run/ResultFile.ts"

const catalog = JSON.parse(readFileSync(new URL("../catalog.json", import.meta.url), "utf8")) as {
  readonly models: ReadonlyArray<{
    readonly files: Readonly<Record<string, { readonly source: string; readonly sha256?: string }>>
  }>
}

it("the kept results of the evaluation are those of the weights in the catalog", () => {
  const shipped = new Map(
    catalog.models.flatMap(({ files }) => Object.values(files).map(({ sha256, source }) => [source, sha256])),
  )
  const evaluations = [...keptResults()].filter(([, { suite }]) => suite === "models")
  expect(evaluations.length).toBe(7)
  for (const [
    name,
    {
      settings: { weights = {} },
    },
  ] of evaluations) {
    expect(Object.keys(weights).length).toBeGreaterThan(8)
    for (const [source, sha256] of Object.entries(weights)) {
      expect([name, source, shipped.get(source)]).toEqual([name, source, sha256])
    }
  }
})

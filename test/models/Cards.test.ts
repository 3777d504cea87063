// The measured parts of the model cards hold exactly the results of the evaluation, on the weights that are shipped.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { cards, measuredText, type Results, withMeasured } from "../../bench/models/Cards.ts"

const models = new URL("../../models/", import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, models), "utf8")

const results = JSON.parse(read("eval/results.json")) as Results
const catalog = JSON.parse(read("catalog.json")) as {
  readonly models: ReadonlyArray<{
    readonly files: Readonly<Record<string, { readonly source: string; readonly sha256?: string }>>
  }>
}

describe("model cards", () => {
  for (const [folder, kinds] of Object.entries(cards)) {
    it(`${folder} quotes the results of the evaluation exactly`, () => {
      const card = read(`${folder}/README.md`)
      expect(withMeasured(card, measuredText(results, kinds))).toBe(card)
      for (const kind of kinds) expect(card).toContain(`**${kind}: `)
    })
  }

  it("quote results of the weights in the catalog", () => {
    const shipped = new Map(
      catalog.models.flatMap(({ files }) =>
        Object.values(files).map(({ sha256, source }) => [source, sha256]),
      ),
    )
    expect(Object.keys(results.weights).length).toBeGreaterThan(8)
    for (const [source, sha256] of Object.entries(results.weights)) {
      expect([source, shipped.get(source)]).toEqual([source, sha256])
    }
  })

  it("have one measured part, in which a changed number is found", () => {
    const measured = measuredText(results, ["Transcription"])
    const card = `# a\n\n${measured}\n\n## b\n`
    expect(withMeasured(card, measured)).toBe(card)
    expect(withMeasured(card.replace("| met", "| missed").replace(/\| (\d)/, "| 9$1"), measured)).toBe(card)
    expect(withMeasured("# no place", measured)).toBeUndefined()
  })
})

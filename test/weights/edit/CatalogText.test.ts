// Inserting and removing entries keeps every other byte of a catalog: comments, indentation, line ends, order.

import fc from "fast-check"
import { stripComments } from "jsonc-parser"
import { describe, expect, it } from "vitest"
import { indexOfEntry, withEntry, withoutEntry } from "#weights/edit/CatalogText.ts"
import { entryLines } from "#weights/edit/EntryText.ts"

interface Entry {
  readonly id: string
}
const parsed = (text: string): { readonly models: ReadonlyArray<Entry> } =>
  JSON.parse(stripComments(text, " "))

/** White space and comments, as an operator may leave them anywhere between two tokens. */
const gap = (newLine: string) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom("", " ", newLine, `${newLine}  `, `${newLine}\t`) },
    fc.constantFrom(
      `// why, ]} "x"${newLine}`,
      "/* [ { */",
      ` // last,${newLine}${newLine}  `,
      `/* a ${newLine} b */ `,
    ),
  )

/** A catalog with entries `m0`, `m1`, … */
const catalogText = fc.constantFrom("\n", "\r\n").chain((newLine) =>
  fc
    .tuple(
      fc.array(fc.tuple(gap(newLine), gap(newLine), fc.string()), { maxLength: 5 }),
      fc.array(gap(newLine), { minLength: 6, maxLength: 6 }),
    )
    .map(([entries, [a, b, c, d, e, f]]) => {
      const listed = entries.map(
        ([before, after, note], index) =>
          `${before}{"id": "m${index}",${newLine}    "note": ${JSON.stringify(note)} }${after}`,
      )
      return `${a}{${b}"models":${c}[${listed.join(",")}${listed.length === 0 ? d : ""}]${e}}${f}`
    }),
)

const added = (id: string) =>
  entryLines(
    { id, files: { weights: { source: "a" } }, tags: [1, "b"] },
    { "": "What it is.", files: "Where." },
  )

/** The comments of a text, in order. */
const commentsOf = (text: string): ReadonlyArray<string> =>
  text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').match(/\/\/[^\r\n]*|\/\*[\s\S]*?\*\//g) ?? []

describe("for every catalog", () => {
  it("adding an entry and removing it gives the same bytes", () => {
    fc.assert(
      fc.property(catalogText, (text) => {
        const more = withEntry(text, added("new"))!
        expect(parsed(more).models).toEqual([
          ...parsed(text).models,
          { id: "new", files: { weights: { source: "a" } }, tags: [1, "b"] },
        ])
        expect(withoutEntry(more, indexOfEntry(more, "new")!)).toBe(text)
      }),
      { numRuns: 2_000 },
    )
  })

  it("any entry can be removed; the others and all comments outside of it stay", () => {
    fc.assert(
      fc.property(catalogText, fc.nat(), (text, which) => {
        const { models } = parsed(text)
        fc.pre(models.length > 0)
        const index = which % models.length
        const less = withoutEntry(text, index)!
        expect(parsed(less).models).toEqual(models.filter((_, at) => at !== index))
        expect(commentsOf(less)).toEqual(commentsOf(text))
      }),
      { numRuns: 2_000 },
    )
  })

  it("several added entries can be removed in any order", () => {
    fc.assert(
      fc.property(catalogText, fc.shuffledSubarray(["a", "b", "c"], { minLength: 3 }), (text, order) => {
        const more = ["a", "b", "c"].reduce((so, id) => withEntry(so, added(id))!, text)
        const less = order.reduce((so, id) => withoutEntry(so, indexOfEntry(so, id)!)!, more)
        expect(parsed(less)).toEqual(parsed(text))
        expect(commentsOf(less)).toEqual(commentsOf(text))
      }),
      { numRuns: 1_000 },
    )
  })
})

it("an entry stands behind the comment of the one before, at its indentation", () => {
  const text = '{\n    "models": [\n        { "id": "a" } // mine\n    ]\n}\n'
  expect(withEntry(text, entryLines({ id: "b", price: {} }, { id: "Chosen by hand." }))).toBe(
    '{\n    "models": [\n        { "id": "a" }, // mine\n        {\n          // Chosen by hand.\n          "id": "b",\n          "price": {}\n        }\n    ]\n}\n',
  )
})

it("no comment can end early, whatever is in it", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (comment) => {
      const text = `{"models": [${entryLines({ id: "a" }, { "": comment, id: `${comment}\n"x": 1,\r` }).join("\n")}]}`
      expect(parsed(text).models).toEqual([{ id: "a" }])
    }),
    { numRuns: 1_000 },
  )
})

it("a text that is no catalog has no place for an entry", () => {
  for (const text of ["", "[]", "{}", '{"models": {}}', "5"]) {
    expect(withEntry(text, ["{}"])).toBeUndefined()
    expect(withoutEntry(text, 0)).toBeUndefined()
    expect(indexOfEntry(text, "a")).toBeUndefined()
  }
})

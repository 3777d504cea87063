// Line and column of keys and values of a hand-written JSON file, and the error for a file that is not JSON.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parseJsonFile } from "#store/files/JsonPlaces.ts"

const parsed = (text: string) => {
  const json = parseJsonFile(text)
  if ("problem" in json) throw new Error(json.problem)
  return json
}

it("knows the line and column of each key and value", () => {
  const json = parsed('{\n  "a": [1,\n    {"b": true}],\n  "a": 2\n}')
  expect(json.placeOfKey(["a"])).toEqual({ line: 2, column: 3 })
  expect(json.placeOfValue(["a", 1, "b"])).toEqual({ line: 3, column: 11 })
  expect(json.placeOfKey(["a", 1, "b"])).toEqual({ line: 3, column: 6 })
  // A missing key is reported where its parent begins.
  expect(json.placeOfValue(["a", 1, "c", "d"])).toEqual({ line: 3, column: 5 })
  expect(json.placeOfValue(["z"])).toEqual({ line: 1, column: 1 })
  expect(json.repeatedKeys).toEqual([{ path: ["a"], place: { line: 4, column: 3 } }])
})

it("reads what JSON.parse reads, and refuses what it refuses", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(parsed(text).value).toEqual(JSON.parse(text))
    }),
  )
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:1 eE-.+\\un\u00A0\u2028') }), (text) => {
      const isJson = (() => {
        try {
          JSON.parse(text)
          return true
        } catch {
          return false
        }
      })()
      expect("problem" in parseJsonFile(text)).toBe(!isJson)
    }),
    { numRuns: 3_000 },
  )
})

describe("a file that is not JSON", () => {
  it.each([
    ["", "the file is empty", 1, 1],
    ["  \n ", "the file is empty", 1, 1],
    ['{"a": [1,\n 2,]}', "a value is expected here", 2, 4],
    ['{\n  "a" 1\n}', "a colon is expected here", 2, 7],
    ['{"a": 1\n "b": 2}', "a comma is expected here", 2, 2],
    ["{'a': 1}", "texts need double quotes", 1, 2],
    ["{1: 1}", "a key in double quotes is expected here", 1, 2],
    ['{"a": "b', "the closing quote of this text is missing", 1, 7],
    ['{"a": 1} 5', "the file should end here", 1, 10],
    ['{"a": 1 /* why }', "the end */ of this comment is missing", 1, 9],
    ["// nothing else", "a value is expected here", 1, 16],
    ['{"a": tru}', "this is not a JSON value", 1, 7],
    ['{"a": [1, 2', "a closing bracket is expected here", 1, 12],
    ["[".repeat(100_000), "is nested too deeply", 1, 1],
  ])("%j: %s", (text, problem, line, column) => {
    const json = parseJsonFile(text)
    expect(json).toMatchObject({ problem: expect.stringContaining(problem), place: { line, column } })
  })
})

it("takes comments, and counts their lines", () => {
  const json = parsed('// first\n{"a": 1, // why\n/* b\n */ "b": [2]}')
  expect(json.value).toEqual({ a: 1, b: [2] })
  expect(json.placeOfValue(["b", 0])).toEqual({ line: 4, column: 11 })
})

it("takes a file that begins with a byte order mark", () => {
  expect(parsed('\uFEFF{"a": 1}').value).toEqual({ a: 1 })
})

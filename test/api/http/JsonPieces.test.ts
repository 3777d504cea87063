// Values in pieces: put together they are the same, and no piece is large.
import fc from "fast-check"
import { expect, it } from "vitest"
import { JsonAssembly, type JsonPiece, piecesOf } from "#api/http/JsonPieces.ts"

const assembled = (pieces: Iterable<JsonPiece>): unknown => {
  const assembly = new JsonAssembly()
  for (const piece of pieces) assembly.add(structuredClone(piece))
  return assembly.value
}

/** Values, keys not counted. */
const countOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? Object.values(value).reduce((sum: number, item) => sum + countOf(item), 1)
    : 1

const repeated = (value: unknown, count: number, asList: boolean): unknown => {
  const items = Array.from({ length: count }, (_, at) => [`k${at}`, value] as const)
  return asList ? items.map(([, item]) => item) : Object.fromEntries(items)
}

/** Small values inside large lists and objects, some levels deep. */
const largeValue = fc
  .tuple(
    fc.jsonValue({ maxDepth: 3 }),
    fc.array(fc.tuple(fc.nat({ max: 90 }), fc.boolean()), { maxLength: 3 }),
    fc.nat({ max: 9_000 }),
  )
  .map(([small, levels, count]) => {
    const many = repeated(0, count, count % 2 === 0)
    return levels.reduce<unknown>(
      (inside, [times, asList]) => repeated(inside, Math.min(times, 30_000 / countOf(inside)), asList),
      { small, many },
    )
  })

it("are the same when they are put together, also the order of keys", () => {
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), largeValue), (value) => {
      const pieces = [...piecesOf(value)]
      expect(JSON.stringify(assembled(pieces))).toBe(JSON.stringify(value))
      for (const { values } of pieces) expect(countOf(values)).toBeLessThanOrEqual(2 * 2_000)
    }),
    { numRuns: 60 },
  )
})

it("split lists in objects in lists, and keep a key that names the prototype", () => {
  const text = `{"__proto__": {"a": [${"0,".repeat(20_000)}1]}, "b": [${"{},".repeat(9_000)}{"__proto__": 1}]}`
  const pieces = [...piecesOf(JSON.parse(text))]
  expect(pieces.length).toBeGreaterThan(7)
  const value = assembled(pieces)
  expect(JSON.stringify(value)).toBe(JSON.stringify(JSON.parse(text)))
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
})

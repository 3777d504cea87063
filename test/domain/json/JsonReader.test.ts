// The reader of large JSON gives what JSON.parse gives of the same bytes, wherever it is interrupted, and refuses what JSON.parse refuses.
import { isDeepStrictEqual } from "node:util"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Parsed } from "#domain/json/JsonLimits.ts"
import { JsonReader, type KeepsBytes, keptFrom } from "#domain/json/JsonReader.ts"

/** Reads in as many parts as the reader looks at its clock. */
const inParts = (
  bytes: Uint8Array,
  keeps?: KeepsBytes,
): { readonly parsed: Parsed; readonly parts: number } => {
  const reader = new JsonReader(bytes, keeps)
  for (let parts = 1; ; parts++) {
    const parsed = reader.read(() => true)
    if (parsed !== undefined) return { parsed, parts }
  }
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** What the event loop gave before large bodies were read in parts. */
const expected = (bytes: Uint8Array): Parsed => {
  try {
    return { value: JSON.parse(new TextDecoder().decode(bytes)) }
  } catch {
    return { problem: "is not valid JSON" }
  }
}

const same = (bytes: Uint8Array): void => {
  const { parsed } = inParts(bytes)
  const wanted = expected(bytes)
  // Not toStrictEqual, to which two objects with a key `constructor` are never equal.
  if (!isDeepStrictEqual(parsed, wanted)) expect(parsed).toEqual(wanted)
  // Order of keys, -0 and lone surrogates, which comparing may not see.
  if ("value" in wanted && "value" in parsed) {
    expect(JSON.stringify(parsed.value)).toBe(JSON.stringify(wanted.value))
    if (typeof wanted.value === "number") expect(Object.is(parsed.value, wanted.value)).toBe(true)
  }
}

/** A few characters again and again, so that texts pass the limits of pieces with something in the way. */
const long = (unit: string, bytes: number): string => unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)))

describe("the same as JSON.parse", () => {
  it("of any value, with blanks and escapes", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t", " \n"), (value, indent) => {
        same(bytesOf(JSON.stringify(value, null, indent)))
      }),
    )
  })

  it("of texts of all characters, each as it is or escaped, and of halves of characters", () => {
    const unit = fc.oneof(
      fc
        .string({ unit: "binary", minLength: 1, maxLength: 1 })
        .map((one) => JSON.stringify(one).slice(1, -1)),
      fc.nat(0xffff).map((code) => `\\u${code.toString(16).padStart(4, "0")}`),
      fc.constantFrom(
        "\\n",
        "\\/",
        "\\\\",
        '\\"',
        "\\b",
        "a",
        "é",
        "日",
        "😀",
        "\\ud83d\\ude00",
        "\\ud83d",
        "\\uDE00x",
      ),
    )
    const text = fc.array(unit, { maxLength: 200 }).map((units) => `"${units.join("")}"`)
    fc.assert(fc.property(text, (json) => same(bytesOf(`{${json}:[${json}]}`))))
  })

  it("of numbers in every form, and of what looks like a number", () => {
    const digits = fc.string({ unit: fc.constantFrom(..."0123456789"), maxLength: 25 })
    const form = fc
      .tuple(
        fc.constantFrom("", "-", "+"),
        digits,
        fc.constantFrom("", "."),
        digits,
        fc.constantFrom("", "e", "E", "e-", "e+"),
        digits,
      )
      .map((parts) => parts.join(""))
    fc.assert(fc.property(fc.oneof(form, fc.double().map(String)), (json) => same(bytesOf(json))))
    for (const json of [
      "-0",
      "0",
      "-",
      "01",
      "-01",
      "1.",
      ".5",
      "1e5",
      "1E400",
      "-1e400",
      "123456789012345678",
      "9007199254740993",
      "5e-324",
      "0x10",
      "1_0",
      "Infinity",
      "NaN",
    ])
      same(bytesOf(json))
  })

  it("of objects with keys that come twice, that are numbers, or that name the prototype", () => {
    const key = fc.constantFrom(
      "a",
      "b",
      "__proto__",
      "constructor",
      "toString",
      "1",
      "0",
      "-1",
      "",
      "\\u0061",
      "é",
    )
    const object = fc
      .array(fc.tuple(key, fc.constantFrom("1", "{}", "[]", "null", '"x"')), { maxLength: 12 })
      .map((pairs) => `{${pairs.map(([name, value]) => `"${name}":${value}`).join(",")}}`)
    fc.assert(
      fc.property(object, (json) => {
        same(bytesOf(json))
        const { parsed } = inParts(bytesOf(json))
        expect("value" in parsed && Object.getPrototypeOf(parsed.value)).toBe(Object.prototype)
      }),
    )
  })

  it("of any bytes, in any order of the characters of JSON", () => {
    const tokens = [
      "{",
      "}",
      "[",
      "]",
      ":",
      ",",
      '"',
      "\\",
      "a",
      "0",
      "-",
      ".",
      "e",
      "true",
      "nul",
      "false",
      " ",
      "\n",
      "\u0001",
      "é",
      "\\u00",
      "\ufeff",
    ]
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...tokens), { maxLength: 30 }), (parts) =>
        same(bytesOf(parts.join(""))),
      ),
      { numRuns: 2_000 },
    )
  })

  it("of a valid text in which one byte is another, missing or doubled", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.nat(),
        fc.nat(255),
        fc.constantFrom("set", "drop", "double"),
        (value, where, byte, how) => {
          const bytes = Buffer.from(JSON.stringify({ value, text: "é日😀\n" }))
          const at = where % bytes.length
          const [before, after] = [bytes.subarray(0, at), bytes.subarray(at + 1)]
          const middle = how === "set" ? [byte] : how === "drop" ? [] : [bytes[at]!, bytes[at]!]
          same(Buffer.concat([before, Buffer.from(middle), after]))
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it.each([
    ["plain", "word "],
    ["of two bytes", "é"],
    ["of three bytes", "日本"],
    ["of four bytes", "a😀"],
    ["escaped quotes", '\\"'],
    ["escaped backslashes", "\\\\"],
    ["escapes of six", "x\\u00e9"],
    ["escaped pairs", "\\ud83d\\ude00-"],
    ["lines", "some words in a line\\n"],
    ["one escape after much", `${"y".repeat(70_000)}\\t`],
  ])("of long texts: %s, with every offset to a piece", (_, unit) => {
    for (let offset = 0; offset < 7; offset++)
      same(bytesOf(`{"text":"${"z".repeat(offset)}${long(unit, 200_000)}","after":"${long(unit, 140_000)}"}`))
  })

  it("of long texts that are not UTF-8, with every offset to a piece", () => {
    const bad = fc.array(fc.constantFrom(0xff, 0xc3, 0x80, 0xbf, 0xe6, 0x97, 0xf0, 0x9f, 0x61, 0xed, 0xa0), {
      minLength: 1,
      maxLength: 12,
    })
    fc.assert(
      fc.property(bad, fc.integer({ min: 0, max: 16 }), (unit, offset) => {
        const text = Buffer.alloc(150_000, Buffer.from(unit))
        same(Buffer.concat([Buffer.from(`["${"z".repeat(offset)}`), text, Buffer.from('"]')]))
      }),
      { numRuns: 60 },
    )
    same(Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]))
    same(Buffer.from([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf, 0x7b, 0x7d]))
    same(Buffer.from([]))
  })

  it.each([
    ["a text without an end", `["${"x".repeat(200_000)}`],
    ["one whose end is escaped", `["${"x".repeat(200_000)}\\"]`],
    ["a control character far inside", `["${"x".repeat(150_000)}\n${"x".repeat(50_000)}"]`],
    ["an escape that is none far inside", `["${"x".repeat(150_000)}\\q${"x".repeat(50_000)}"]`],
    ["half an escape before the end", `["${"x".repeat(65_530)}\\u00"]`],
    ["blanks without a value", " ".repeat(100_000)],
    ["blanks around a value", `${" ".repeat(100_000)}1${"\n".repeat(100_000)}`],
    ["something after the value", `{}${" ".repeat(100_000)}x`],
    ["a long key", `{"${"k".repeat(200_000)}":1}`],
  ])("of %s", (_, json) => same(bytesOf(json)))
})

it("reads a large value in many parts", () => {
  const value = {
    texts: Array.from({ length: 40 }, (_, at) => `${at} ${"text ".repeat(20_000)}`),
    numbers: Array.from({ length: 60_000 }, (_, at) => at),
  }
  const { parsed, parts } = inParts(bytesOf(JSON.stringify(value)))
  expect(parsed).toEqual({ value })
  expect(parts).toBeGreaterThan(200)
})

describe("refuses", () => {
  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels)

  it.each([
    ["too many values", `[${"0,".repeat(100_001)}0]`, "has more than 100000 values"],
    [
      "too many keys",
      JSON.stringify([{ a: Object.fromEntries(Array.from({ length: 8_193 }, (_, at) => [`k${at}`, at])) }]),
      "has an object of more than 8192 keys",
    ],
    ["a key again and again", `{${'"a":0,'.repeat(8_192)}"a":0}`, "has an object of more than 8192 keys"],
    ["long numbers", `[${"1".repeat(1_025)}]`, "has a number of more than 1024 characters"],
    ["lists in lists", nested(129), "is nested more than 128 levels deep"],
    ["200,000 of them", nested(200_000), "is nested more than 128 levels deep"],
    ["objects in objects", `${'{"a":'.repeat(2_000)}1`, "is nested more than 128 levels deep, in a.a.a.a"],
    [
      "deep schemas",
      `{"a":[1,{"b":"x,]"}],"tools":[{},{"function":{"parameters":{"items":${nested(200)}}}}]}`,
      "is nested more than 128 levels deep, in tools[1].function.parameters",
    ],
  ])("%s", (_, json, problem) => expect(inParts(bytesOf(json)).parsed).toEqual({ problem }))

  it("no value at these limits", () => {
    same(bytesOf(nested(128)))
    same(bytesOf(`[${"0,".repeat(99_999)}0]`))
    same(
      bytesOf(JSON.stringify(Object.fromEntries(Array.from({ length: 8_192 }, (_, at) => [`k${at}`, at])))),
    )
    same(bytesOf("1".repeat(1_024)))
    // Brackets and commas inside of texts are no values.
    same(bytesOf(JSON.stringify({ text: "[{,".repeat(100_000) })))
  })
})

describe("texts that stay bytes", () => {
  const atAudio: KeepsBytes = (path) => path.length === 2 && path[0] === "list" && path[1] === 1

  it("are those that are asked for, with their escapes undone", () => {
    const plain = "A+/b".repeat(keptFrom)
    const json = JSON.stringify({ before: plain, list: [plain, plain, plain] }).replace(/\//g, "\\/")
    for (const text of [json, json.replaceAll("\\/", "/")]) {
      const { parsed } = inParts(bytesOf(text), atAudio)
      const list = "value" in parsed ? (parsed.value as { list: ReadonlyArray<unknown> }).list : undefined
      expect(list?.map((one) => one instanceof Uint8Array)).toEqual([false, true, false])
      expect(Buffer.from(list?.[1] as Uint8Array).toString()).toBe(plain)
    }
  })

  it("are counted, and short ones are texts", () => {
    const reader = new JsonReader(bytesOf(JSON.stringify({ list: ["", "x".repeat(5_000)] })), atAudio)
    reader.read(() => false)
    expect(reader.keptBytes).toBe(5_000)
    expect(inParts(bytesOf('{"list":["","x"]}'), atAudio).parsed).toEqual({ value: { list: ["", "x"] } })
  })

  it("are refused where their text is no JSON", () => {
    const bytes = bytesOf(`{"list":["","${"x".repeat(70_000)}\n"]}`)
    expect(inParts(bytes, atAudio).parsed).toEqual({ problem: "is not valid JSON" })
  })
})

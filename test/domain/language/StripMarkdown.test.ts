// What is stripped from a text before it is spoken, and what must be kept.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { cleanSpeechText, codePointCount, speechTextWithin } from "#domain/language/StripMarkdown.ts"

const stripped: ReadonlyArray<readonly [string, string]> = [
  // quotes
  ['"Hello there."', "Hello there."],
  ["'I don't know'", "I don't know"],
  ["“Quoted”", "Quoted"],
  ["«Bonjour»", "Bonjour"],
  ["„Guten Tag“", "Guten Tag"],
  ["「こんにちは」", "こんにちは"],
  ["  \"'twice'\"\n", "twice"],
  ['""', ""],
  // code
  ["```python\nprint('hi')\n```", "print('hi')"],
  ["Run this:\n```\nnpm start\n```\nDone.", "Run this:\nnpm start\nDone."],
  ["~~~js\nlet a = b * c\n~~~", "let a = b * c"],
  ["```ts\nno end", "no end"],
  ["Use `npm start` or ``x``.", "Use npm start or x."],
  ["```one line```", "one line"],
  // headings, lists, quotations, rules
  ["# Title\nText", "Title\nText"],
  ["###### Six ##\nText", "Six\nText"],
  ["Title\n=====\nText", "Title\nText"],
  ["A\n\n---\n\nB", "A\n\n\nB"],
  ["- one\n* two\n+ three", "one\ntwo\nthree"],
  ["  - nested\n\t* deeper", "nested\ndeeper"],
  ["- [ ] open\n- [x] done", "open\ndone"],
  ["1. first\n2) second\n10. tenth", "first\nsecond\ntenth"],
  ["> said\n>> twice", "said\ntwice"],
  // tables
  ["| Name | Age |\n|------|:---:|\n| Ann | 5 |\n\nAfter | all", "Name, Age\nAnn, 5\n\nAfter | all"],
  // links
  ["See [the docs](https://example.com/a_(b)).", "See the docs."],
  ['[a](b.md "Title") and ![a cat](cat.png)', "a and a cat"],
  ["<https://example.com/x>", "https://example.com/x"],
  ["Text\n[1]: https://example.com", "Text"],
  // emphasis
  ["**bold**, *italic*, ***both***", "bold, italic, both"],
  ["__bold__, _italic_, ~~gone~~", "bold, italic, gone"],
  ["**Note:** a *very* long day.", "Note: a very long day."],
  ["**bold with *italic* inside**", "bold with italic inside"],
  ["(*yes*), “**no**”!", "(yes), “no”!"],
  ["这是**重点**内容，**很好**", "这是重点内容，很好"],
  ["**중요**합니다", "중요합니다"],
  ["# **Title**\n\n1. *a*\n2. `b`", "Title\n\na\nb"],
]

/** Plain text, with every character that could be mistaken for a mark. */
const kept: ReadonlyArray<string> = [
  "2 * 3",
  "2*3*4 = 24",
  "a * b * c",
  "5 < 6 > 4",
  "snake_case and an_other_name",
  "don't",
  "'Tis the season, isn't it?",
  '"A" and "B"',
  "'A' and 'B'",
  '"unfinished',
  'She said "no".',
  "C# and F#",
  "#hashtag first",
  "# ",
  "Room #5",
  "5* hotel and 4* hotel",
  "*args and **kwargs",
  "M*A*S*H",
  "(*) and (*)",
  "*_* and ^_^ and -_- and >_<",
  "¯\\_(ツ)_/¯",
  "\\*not italic\\*",
  "f[i](x) and a[0]",
  "[sic] (see below)",
  "[Alice]: Hello",
  "|x| + |y|",
  "a | b | c",
  "~5 minutes, ~10 km",
  "1. Only one number",
  "2024. What a year.",
  "3.14 is pi",
  "-5 degrees",
  "— Bonjour, dit-il.",
  "Price: 5-10 $, 50% off!",
  "`Twas brillig",
  "<b>HTML</b> stays",
  "x > y",
  ">5 people came",
  "one\n\ntwo\n  three",
  "user@example.com, https://example.com/a_b_c*d*",
  "...and then?!",
  "🙂 naïve façade – 中文，日本語。",
]

/** Random text: words, spaces and every markdown mark. */
const soup = fc
  .array(
    fc.oneof(
      fc.constantFrom(..."*_~`#>-+|[]()!\"'“”<>\\ \n\t.:1x".split("")),
      fc.constantFrom(
        "**",
        "__",
        "```",
        "~~",
        "](",
        "](http://a.b)",
        "# ",
        "- ",
        "1. ",
        "> ",
        "|-|-|",
        "\n",
        "word",
        "é",
        "漢字",
        "🙂",
      ),
    ),
    { maxLength: 60 },
  )
  .map((parts) => parts.join(""))

describe("cleanSpeechText", () => {
  it.each(stripped)("%j → %j", (input, output) => expect(cleanSpeechText(input)).toBe(output))

  it.each(kept)("leaves %j alone", (text) => expect(cleanSpeechText(text)).toBe(text.trim()))

  it("leaves any line made of plain words and stops alone", () => {
    const word = fc.string({
      unit: fc.constantFrom(..."abcxyzABCéüßñøДжяعربي0123"),
      minLength: 1,
      maxLength: 8,
    })
    const plain = fc
      .array(
        fc.tuple(
          word,
          fc.constantFrom(" ", ", ", ". ", "? ", " - ", "'", "_", "*", " * ", " < ", " > ", "/", ": "),
        ),
        { maxLength: 20 },
      )
      .map((pairs) => pairs.map(([a, b]) => a + b).join(""))
      .map((text) => `Start ${text} end`)
    fc.assert(
      fc.property(plain, (text) => {
        expect(cleanSpeechText(text)).toBe(text)
      }),
      { numRuns: 2000 },
    )
  })

  it("cleaning twice is cleaning once, and never makes a text longer", () => {
    fc.assert(
      fc.property(fc.oneof(soup, fc.string({ unit: "grapheme" })), (text) => {
        const once = cleanSpeechText(text)
        expect(cleanSpeechText(once)).toBe(once)
        expect(once.length).toBeLessThanOrEqual(text.length)
        expect(codePointCount(once)).toBeLessThanOrEqual(codePointCount(text))
      }),
      { numRuns: 5000 },
    )
  })

  it("drops no letter but those of addresses", () => {
    const letters = (text: string) => text.replace(/[^\p{Script=Han}é🙂]/gu, "")
    fc.assert(
      fc.property(soup, (text) => {
        fc.pre(!text.includes("](") && !text.includes("]:"))
        expect(letters(cleanSpeechText(text))).toBe(letters(text))
      }),
      { numRuns: 3000 },
    )
  })

  it("keeps the code of a fenced block, line by line", () => {
    const line = fc.stringMatching(/^[a-z0-9=+(). ]{1,20}$/).map((text) => `x${text}x`)
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 6 }),
        fc.constantFrom("", "python", "c++", "objective-c"),
        (lines, name) => {
          expect(cleanSpeechText(`\`\`\`${name}\n${lines.join("\n")}\n\`\`\``)).toBe(lines.join("\n"))
        },
      ),
    )
  })
})

describe("the cap", () => {
  it("counts code points of the cleaned text", () => {
    expect(codePointCount("a🙂é漢")).toBe(4)
    expect(codePointCount("\ud83d")).toBe(1)
    expect(speechTextWithin('"**four**"', 4)).toBe("four")
    expect(speechTextWithin('"**fours**"', 4)).toBeUndefined()
    expect(speechTextWithin("🙂".repeat(4), 4)).toBe("🙂".repeat(4))
    expect(speechTextWithin("🙂".repeat(5), 4)).toBeUndefined()
  })

  it("is decided without work for texts far beyond it", () => {
    expect(speechTextWithin("*".repeat(8 << 20), 4096)).toBeUndefined()
  })

  it("does a bounded amount of work on the worst nesting", () => {
    // Each pass removes one layer; after some passes the text is returned with marks, instead of 20,000 passes.
    const nested = `${"*_".repeat(8000)}x${"_*".repeat(8000)}`
    const cleaned = cleanSpeechText(nested)
    expect(cleaned.length).toBeLessThan(nested.length)
    expect(cleaned).toContain("x")
  })
})

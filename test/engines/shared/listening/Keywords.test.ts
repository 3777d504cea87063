// The phrases of a request: which tokens go on in them, and what the search writes against the highest scores.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { KeywordGraph, KeywordGraphs, TokenSpellings } from "#engines/shared/listening/KeywordGraph.ts"
import { type Following, KeywordSearch, type KindOf } from "#engines/shared/listening/KeywordSearch.ts"

const utf8 = new TextEncoder()
const bytesOf = (...pieces: ReadonlyArray<string>) => pieces.map((piece) => utf8.encode(piece))

/** Pieces of words, the single letters and a space among them. */
const pieces = [..." abcdefghijklmnopqrstuvwxyz", " a", " ab", "ab", "bc", " cab", "ca", "東", "京"]
const spellings = new TokenSpellings(bytesOf(...pieces))
const idOf = (piece: string) => pieces.indexOf(piece)

/** Every way to spell a text with the pieces. */
const spelled = (text: string): ReadonlyArray<ReadonlyArray<number>> =>
  text === ""
    ? [[]]
    : pieces.flatMap((piece, token) =>
        text.startsWith(piece) ? spelled(text.slice(piece.length)).map((rest) => [token, ...rest]) : [],
      )

const phrase = fc.string({ unit: fc.constantFrom(..."abc"), minLength: 1, maxLength: 6 })

describe("the graph", () => {
  it("leads along every spelling of a phrase, and each of its steps is one", () => {
    fc.assert(
      fc.property(fc.array(phrase, { minLength: 1, maxLength: 8 }), (phrases) => {
        const graph = new KeywordGraph(phrases, spellings)
        for (const each of phrases) {
          for (const tokens of spelled(` ${each}`)) {
            let node: number = KeywordGraph.root
            for (const token of tokens) {
              const step = graph.stepsFrom(node).find((one) => one.token === token)
              expect(step).toBeDefined()
              expect(graph.after(node, token)).toBe(step!.node)
              node = step!.node
            }
            expect(graph.isEnd(node)).toBe(true)
            expect(graph.charactersOf(node)).toBe(each.length)
          }
        }
        const texts = new Set(phrases.map((each) => ` ${each}`))
        const walk = (node: number, text: string): void => {
          if (graph.isEnd(node)) expect(texts.has(text)).toBe(true)
          for (const { node: next, token } of graph.stepsFrom(node)) {
            expect([...texts].some((each) => each.startsWith(text + pieces[token]))).toBe(true)
            walk(next, text + pieces[token])
          }
        }
        walk(KeywordGraph.root, "")
      }),
      { numRuns: 60 },
    )
  })

  it("writes phrases in the case of the vocabulary, without double spaces", () => {
    const upper = new TokenSpellings(bytesOf(" ", "A", "B"))
    expect(upper.spell(" ab \t b")).toEqual(["AB B"])
    expect(spellings.spell("Ab")).toEqual(["ab"])
    expect(new TokenSpellings(bytesOf("a", "B")).spell("aB")).toEqual(["aB", "ab"])
  })

  it("gives the phrases of a text the capitals that they have", () => {
    const graph = new KeywordGraph(["New York", "York", "McAdam's (1.5)", "apple"], spellings)
    expect(graph.written("from new york to york, NEW YORKSHIRE. Apple, mcadam's (1.5)")).toBe(
      "from New York to York, NEW YORKSHIRE. Apple, McAdam's (1.5)",
    )
    expect(new KeywordGraph(["apple"], spellings).written("Apple")).toBe("Apple")
  })

  it("scripts without spaces begin anywhere", () => {
    const graph = new KeywordGraph(["東京"], spellings)
    const node = graph.after(KeywordGraph.root, idOf("東"))
    expect(graph.after(node!, idOf("京"))).toBeDefined()
    expect(graph.charactersOf(node!)).toBe(1)
  })

  it("is built once for the same phrases, and four are kept", () => {
    let made = 0
    const graphs = new KeywordGraphs(() => {
      made++
      return spellings
    })
    expect(graphs.of(undefined)).toBeUndefined()
    expect(graphs.of([])).toBeUndefined()
    expect(made).toBe(0)
    const first = graphs.of(["a"])
    for (const each of ["b", "c", "a", "d", "e"]) graphs.of([each])
    expect(graphs.of(["a"])).toBe(first)
    for (const each of ["f", "g", "h", "i"]) graphs.of([each])
    expect(graphs.of(["a"])).not.toBe(first)
    expect(made).toBe(1)
  })
})

const end = pieces.length
const kindOf: KindOf = (token) => (token === end ? "mark" : "text")

/** Greedy decoding over a table of scores that depend on the place only, with the search and its way back. */
const written = (
  phrases: ReadonlyArray<string>,
  table: ReadonlyArray<Float32Array>,
): { readonly text: string; readonly steps: number } => {
  const search = new KeywordSearch(new KeywordGraph(phrases, spellings), kindOf)
  const tokens: Array<number> = []
  let following = search.begin
  let trial:
    | { readonly at: number; readonly following: Following; readonly tried: ReadonlyArray<number> }
    | undefined
  let tried: ReadonlyArray<number> = []
  let steps = 0
  for (;;) {
    steps++
    const row = table[tokens.length]!
    const best = row.indexOf(Math.max(...row))
    const chosen = search.choose(following, row, best, tried)
    if (chosen === undefined) {
      tried = [...trial!.tried, tokens[trial!.at]!]
      following = trial!.following
      tokens.length = trial!.at
      trial = undefined
      continue
    }
    expect(chosen.gap).toBe(row[best]! - row[chosen.token]!)
    if (chosen.opens) trial = { at: tokens.length, following, tried }
    tried = []
    following = chosen.following
    if (following.trial === undefined) trial = undefined
    if (chosen.token === end) break
    tokens.push(chosen.token)
  }
  return { text: tokens.map((token) => pieces[token]).join(""), steps }
}

/** Scores in which `text` is the best by 10, letter by letter, but where `gaps` says that another letter is so far below. */
const tableOf = (text: string, gaps: Readonly<Record<number, readonly [letter: string, gap: number]>> = {}) =>
  [...text, undefined].map((letter, at) => {
    const row = new Float32Array(end + 1).fill(-10)
    row[letter === undefined ? end : idOf(letter)] = 0
    const other = gaps[at]
    if (other !== undefined) row[idOf(other[0])] = -other[1]
    return row
  })

describe("the search", () => {
  it("writes a phrase whose letters are a little less probable", () => {
    expect(written(["zorvan"], tableOf(" sorban", { 1: ["z", 1], 4: ["v", 2] })).text).toBe(" zorvan")
    // At the beginning of a text no space comes before it.
    expect(written(["zorvan"], tableOf("sorvan says", { 0: ["z", 1] })).text).toBe("zorvan says")
  })

  it("gives back a phrase that is not completed", () => {
    expect(written(["zorvan"], tableOf(" sorbin", { 1: ["z", 1] })).text).toBe(" sorbin")
    expect(written(["zorvan"], tableOf(" sorv", { 1: ["z", 1] })).text).toBe(" sorv")
  })

  it("gives back a phrase in the middle of a longer word", () => {
    expect(written(["zorvan"], tableOf(" sorvanian", { 1: ["z", 1] })).text).toBe(" sorvanian")
    expect(written(["zorvan", "zorvanian"], tableOf(" sorvanian", { 1: ["z", 1] })).text).toBe(" zorvanian")
  })

  it("ends the word behind a phrase where that is a little less probable", () => {
    const table = tableOf(" sorvanis", { 1: ["z", 1] })
    table[7]![idOf(" ")] = -3
    const rest = tableOf(" sorvan is").slice(8)
    expect(written(["zorvan"], [...table.slice(0, 8), ...rest]).text).toBe(" zorvan is")
    // Also where the phrase itself was heard.
    const heard = tableOf(" zorvanis")
    heard[7]![idOf(" ")] = -3
    expect(written(["zorvan"], [...heard.slice(0, 8), ...rest]).text).toBe(" zorvan is")
    expect(written([], tableOf(" zorvanis")).text).toBe(" zorvanis")
  })

  it("tries one phrase at a place", () => {
    const table = tableOf(" sora", { 1: ["z", 0.5] })
    table[1]![idOf("m")] = -0.8
    expect(written(["zorvan", "mora"], table).text).toBe(" sora")
    expect(written(["mora"], table).text).toBe(" mora")
  })

  it("begins with words, and leaves a text alone that has a phrase already", () => {
    expect(written(["ann"], tableOf(" plane", { 4: ["n", 1] })).text).toBe(" plane")
    expect(written(["zorvan", "zorvas"], tableOf(" zorvan", { 6: ["s", 1] })).text).toBe(" zorvan")
  })

  it("goes on in a phrase of several words", () => {
    expect(written(["new york"], tableOf(" new pork", { 5: ["y", 2] })).text).toBe(" new york")
  })

  const rows = fc.array(
    fc.array(fc.double({ min: -8, max: 0, noNaN: true }), { minLength: end + 1, maxLength: end + 1 }),
    {
      minLength: 1,
      maxLength: 14,
    },
  )

  it("without a phrase in the result, the result is that without phrases, whatever the scores are", () => {
    fc.assert(
      fc.property(rows, fc.array(phrase, { minLength: 1, maxLength: 5 }), (scores, phrases) => {
        const table = [...scores.map((row) => Float32Array.from(row)), new Float32Array(end + 1).fill(-100)]
        table.at(-1)![end] = 0
        const greedy = table.map((row) => row.indexOf(Math.max(...row)))
        const plain = greedy.slice(0, greedy.indexOf(end)).map((token) => pieces[token])
        const { text } = written(phrases, table)
        const hasPhrase = phrases.some((each) => ` ${text}`.includes(` ${each}`))
        if (!hasPhrase) expect(text).toBe(plain.join(""))
      }),
      { numRuns: 300 },
    )
  })
})

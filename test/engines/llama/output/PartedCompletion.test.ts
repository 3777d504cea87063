// The parts of a reply: thinking, calls, answer, wherever the text is cut into tokens.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { PartedCompletion, type PieceParser, type TextPiece } from "#engines/llama/output/PartedCompletion.ts"
import { Vocabulary } from "#engines/llama/output/Vocabulary.ts"

/** Byte-fallback spelling: one token a byte; 256 ends the reply. */
const vocabulary = new Vocabulary({
  size: 257,
  spelling: "spaced",
  spelled: (token) => `<0x${token.toString(16).toUpperCase().padStart(2, "0")}>`,
  attributes: () => 32,
  isEnd: (token) => token === 256,
  shown: new Set(),
})

/** Calls are written `[name:]`. */
const bracketParser = (): PieceParser => {
  let held = ""
  let inside = false
  let calls = 0
  const push = (text: string): ReadonlyArray<TextPiece> => {
    const pieces: Array<TextPiece> = []
    for (const letter of text) {
      if (!inside && letter !== "[") pieces.push({ text: letter })
      else if (letter === ":") pieces.push({ text: "", part: { kind: "call", call: calls++, name: held } })
      else if (letter !== "[" && letter !== "]") held += letter
      if (letter === "[" || letter === "]") {
        inside = letter === "["
        held = ""
      }
    }
    return pieces
  }
  return { push, end: () => [] }
}

interface Asked {
  readonly stop?: ReadonlyArray<string>
  readonly maxTokens?: number
  readonly showsThinking?: boolean
  readonly parser?: PieceParser
  readonly thinks?: boolean
}

const run = (text: string, asked: Asked = {}) => {
  const completion = new PartedCompletion({
    stop: asked.stop ?? [],
    maxTokens: asked.maxTokens ?? 10_000,
    thought: asked.thinks === true ? { open: "<t>", close: "</t>", startsInside: false } : undefined,
    showsThinking: asked.showsThinking ?? true,
    parser: asked.parser,
  })
  const pieces: Array<TextPiece> = []
  for (const byte of [...new TextEncoder().encode(text), 256]) {
    const progress = completion.accept(vocabulary.piece(byte))
    pieces.push(...progress.pieces)
    if (progress.finish !== undefined) return { pieces, finish: progress.finish, completion }
  }
  throw new Error("the reply did not end")
}

const textOf = (pieces: ReadonlyArray<TextPiece>, kind: string | undefined): string =>
  pieces
    .filter(({ part }) => part?.kind === kind)
    .map(({ text }) => text)
    .join("")

const plain = fc.string({ unit: fc.constantFrom("a", "é", " ", "\n", "<", "t", ">", "/"), maxLength: 30 })

describe("a reply of parts", () => {
  it("gives thinking and answer as they were written, without white space at the borders of the block", () => {
    fc.assert(
      fc.property(plain, plain, (thought, answer) => {
        fc.pre(!thought.includes("</t>"))
        const { finish, pieces } = run(`<t>${thought}</t>\n${answer}`, { thinks: true })
        expect(finish).toBe("stop")
        expect(textOf(pieces, "reasoning")).toBe(thought.trim())
        expect(textOf(pieces, undefined)).toBe(answer.trimStart())
        expect(pieces.every(({ text }) => text !== "")).toBe(true)
      }),
    )
  })

  it("drops thinking that was not asked for, and counts its tokens", () => {
    const { completion, pieces } = run("<t>hm</t>Hi", { thinks: true, showsThinking: false })
    expect(pieces.map(({ text }) => text).join("")).toBe("Hi")
    expect(completion.reasoningTokens).toBe("<t>hm</t>".length - 2)
  })

  it("applies stop sequences to the answer only", () => {
    const { finish, pieces } = run("<t>STOP</t>go STOP on", { thinks: true, stop: ["STOP"] })
    expect(finish).toBe("stop")
    expect(textOf(pieces, "reasoning")).toBe("STOP")
    expect(textOf(pieces, undefined)).toBe("go ")
  })

  it("ends with tool_calls if it has a call, and with length if it was cut", () => {
    const text = "so [look:] end"
    expect(run(text, { parser: bracketParser() }).finish).toBe("tool_calls")
    expect(run("so", { parser: bracketParser() }).finish).toBe("stop")
    expect(run(text, { parser: bracketParser(), maxTokens: 9 }).finish).toBe("length")
    const { pieces } = run(text, { parser: bracketParser(), stop: ["so l"] })
    // A call interrupts a stop sequence that has begun.
    expect(textOf(pieces, undefined)).toBe("so  end")
    expect(pieces.findIndex(({ part }) => part?.kind === "call")).toBeGreaterThan(0)
  })
})

import { describe, expect, it } from "vitest"
import { vocabularyOfSentencePiece, vocabularyOfText } from "#engines/transducer/decoding/Vocabulary.ts"
import { bytes, concat, integer, text } from "../../../../bench/sizes/onnx/Messages.ts"

describe("vocabularies", () => {
  it("of pieces with ids: in the order of the ids, a line with an id alone is a space", () => {
    expect(vocabularyOfText("▁the 1\n<unk> 0\n 2\r\na b 3\n<blk> 4\n")).toEqual({
      pieces: ["<unk>", "▁the", "▁", "a b", "<blk>"],
      blank: 4,
    })
  })

  it("of pieces alone: the line's number is the id", () => {
    expect(vocabularyOfText("<unk>\n▁a\nb 7x\n")).toEqual({
      pieces: ["<unk>", "▁a", "b 7x"],
      blank: undefined,
    })
  })

  it("that are cut, mixed or empty are refused in words", () => {
    expect(() => vocabularyOfText("<unk> 0\n▁a 1\nb 3\n")).toThrow(/has the id 3, but 3 lines/)
    expect(() => vocabularyOfText("<unk> 0\n▁a 1\nb 1\n")).toThrow(/has the id 1 twice/)
    expect(() => vocabularyOfText("<unk> 1\n▁a 2\n\n")).toThrow(/has no piece with the id 0/)
    expect(() => vocabularyOfText("")).toThrow(/has no pieces/)
  })

  const piece = (value: string, kind?: number) =>
    bytes(
      1,
      concat([
        text(1, value),
        Buffer.from([0x15, 0, 0, 0, 0]),
        ...(kind === undefined ? [] : [integer(3, kind)]),
      ]),
    )
  const model = concat([piece("<unk>", 2), piece("s", 3), piece("▁a"), piece("é"), bytes(2, integer(3, 4))])

  it("of SentencePiece: pieces in their order; control pieces never become text", () => {
    expect(vocabularyOfSentencePiece(model)).toEqual({
      pieces: ["<unk>", "<s>", "▁a", "é"],
      blank: undefined,
    })
  })

  it("of SentencePiece, cut at any byte, are refused or shorter, and never hang", () => {
    for (let size = 0; size < model.length; size++) {
      try {
        expect(vocabularyOfSentencePiece(model.subarray(0, size)).pieces.length).toBeLessThanOrEqual(4)
      } catch (cause) {
        expect((cause as Error).message).toMatch(/is cut short|has no pieces/)
      }
    }
  })
})

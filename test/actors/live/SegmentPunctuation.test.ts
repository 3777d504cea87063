// Segments of an engine with the requested punctuation: order, times, words, pieces.
import { describe, expect, it } from "@effect/vitest"
import { SegmentPunctuation } from "#actors/live/SegmentPunctuation.ts"
import type { TranscriptSegment } from "#domain/audio/Transcript.ts"
import { interpolatedWords } from "#engines/shared/listening/Words.ts"

const segment = (text: string, windowStart = 0, start = windowStart): TranscriptSegment => ({
  windowStart,
  start,
  end: start + 2,
  text,
  tokens: [1],
  temperature: 0,
  avgLogprob: 0,
  compressionRatio: 1,
  noSpeechProb: 0,
  words: interpolatedWords(text, start, start + 2, "en"),
})

const textsOf = (segments: ReadonlyArray<TranscriptSegment>) => segments.map(({ text }) => text)

describe("segments", () => {
  it("are unchanged if nothing was requested", () => {
    const one = segment(" a, b")
    const marks = new SegmentPunctuation(undefined, "en")
    expect(marks.push(one)[0]).toBe(one)
    expect(marks.end()).toEqual([])
  })

  it("lose their marks at once, also in their words; a segment of marks alone is dropped", () => {
    const marks = new SegmentPunctuation(false, "en")
    const [first] = marks.push(segment(" Well, 3"))
    expect(first!.text).toBe(" Well 3")
    expect(first!.words!.map(({ word }) => word)).toEqual(["Well", "3"])
    expect(first!.words!.at(-1)!.end).toBe(2)
    expect(marks.push(segment("?!"))).toEqual([])
    expect(textsOf(marks.push(segment(" yes.")))).toEqual([" yes"])
    expect(marks.end()).toEqual([])
    // A number that goes on in the next segment.
    const number = new SegmentPunctuation(false, "en")
    expect([...number.push(segment(" 3.")), ...number.push(segment("5"))].map(({ text }) => text)).toEqual([
      " 3",
      ".5",
    ])
  })

  it("get their marks when their piece is complete", () => {
    const marks = new SegmentPunctuation(true, "en")
    expect(marks.push(segment(" one"))).toEqual([])
    expect(marks.push(segment(" how are you", 0, 2))).toEqual([])
    const first = marks.push(segment(" three", 4))
    expect(textsOf(first)).toEqual([" One.", " How are you?"])
    expect(first[1]!.words!.map(({ word }) => word)).toEqual(["How", "are", "you?"])
    expect(first.map(({ start, end }) => [start, end])).toEqual([
      [0, 2],
      [2, 4],
    ])
    expect(textsOf(marks.end())).toEqual([" Three."])
    expect(marks.end()).toEqual([])
    // Another call goes on from there; from the model's first mark on its text stays as it is.
    const next = new SegmentPunctuation(true, "en", marks.state)
    next.push(segment(" four", 6))
    next.push(segment(" five.", 6))
    expect(textsOf(next.end())).toEqual([" four", " five."])
    const last = new SegmentPunctuation(true, "en", next.state)
    last.push(segment(" six", 8))
    expect(textsOf(last.end())).toEqual([" six"])
  })
})

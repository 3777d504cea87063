// For any engine output, the captions made of it parse under a strict grammar, in order, with the same words.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { srt, type TranscriptSegment, vtt } from "#domain/audio/Transcript.ts"
import { parseSrt, parseVtt } from "../../support/audio/Captions.ts"

const nasty = fc.constantFrom(
  "\n",
  "\r",
  "\r\n",
  "\n\n",
  "-->",
  "--->",
  "--",
  ">",
  "<i>",
  "&",
  "&amp;",
  "\0",
  "\u2028",
  "1",
  " ",
  "WEBVTT",
  "00:00:01,000 --> 00:00:02,000",
)
const text = fc
  .array(fc.oneof(nasty, fc.string({ maxLength: 8 })), { maxLength: 6 })
  .map((parts) => parts.join(""))

/** Ordered segments, some without length, some that end early, as rounding and engines produce them. */
const segments = fc
  .array(
    fc.record({
      gap: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 5000, noNaN: true })),
      length: fc.oneof(
        fc.constant(0),
        fc.double({ min: -1, max: 30, noNaN: true }),
        fc.double({ min: 0, max: 1e-4, noNaN: true }),
      ),
      text,
    }),
    { maxLength: 12 },
  )
  .map((drawn) => {
    let at = 0
    return drawn.map((each): TranscriptSegment => {
      const start = at + each.gap
      const end = start + each.length
      at = Math.max(start, end)
      return {
        start,
        end,
        text: each.text,
        tokens: [],
        temperature: 0,
        avgLogprob: 0,
        compressionRatio: 1,
        noSpeechProb: 0,
        windowStart: 0,
      }
    })
  })

const wordsOf = (texts: ReadonlyArray<string>): string => texts.join("").replaceAll(/[\s\0>-]/gu, "")

describe("captions", () => {
  it.each([
    ["srt", srt, parseSrt],
    ["vtt", vtt, parseVtt],
  ] as const)("%s", (_, write, parse) => {
    fc.assert(
      fc.property(segments, (drawn) => {
        const cues = parse(write(drawn))
        expect(wordsOf(cues.map((cue) => cue.text))).toBe(wordsOf(drawn.map((segment) => segment.text)))
        const last = Math.max(0, ...drawn.map(({ end, start }) => Math.max(start, end)))
        for (const cue of cues) expect(cue.startMs).toBeLessThanOrEqual(Math.round(last * 1000) + cues.length)
      }),
      { numRuns: 500 },
    )
  })

  it("pass the hour and the hundredth hour", () => {
    const at = (seconds: number): TranscriptSegment => ({
      start: seconds,
      end: seconds + 1.0005,
      text: " x",
      tokens: [],
      temperature: 0,
      avgLogprob: 0,
      compressionRatio: 1,
      noSpeechProb: 0,
      windowStart: 0,
    })
    expect(srt([at(3_599.9996), at(360_000)])).toBe(
      "1\n01:00:00,000 --> 01:00:01,000\nx\n\n2\n100:00:00,000 --> 100:00:01,001\nx\n\n",
    )
  })
})

describe("cues of segments with words", () => {
  const timed = (count: number, seconds: number, length = 5): TranscriptSegment => {
    const words = Array.from({ length: count }, (_, i) => ({
      word: `${"abcdefghij"[i % 10]}`.repeat(length - 1),
      start: i * seconds,
      end: (i + 0.9) * seconds,
    }))
    return {
      start: 0,
      end: count * seconds,
      text: words.map(({ word }) => ` ${word}`).join(""),
      words,
      tokens: [],
      temperature: 0,
      avgLogprob: 0,
      compressionRatio: 1,
      noSpeechProb: 0,
      windowStart: 0,
    }
  }

  it("are at most 7 s and 84 characters long, and begin and end with words", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.double({ min: 0.05, max: 3, noNaN: true }),
        fc.integer({ min: 2, max: 30 }),
        (count, seconds, length) => {
          const segment = timed(count, seconds, length)
          const cues = parseSrt(srt([segment]))
          expect(cues.map(({ text: shown }) => shown).join(" ")).toBe(segment.text.trim())
          for (const cue of cues) {
            expect(cue.endMs - cue.startMs).toBeLessThanOrEqual(7_001)
            expect(cue.text.length).toBeLessThanOrEqual(84)
          }
          expect(cues[0]!.startMs).toBe(0)
          expect(cues.at(-1)!.endMs).toBe(Math.round(segment.end * 1000))
        },
      ),
    )
  })

  it("are the segment where its words are not those of its text, or have no times", () => {
    const { words: _words, ...without } = timed(40, 1)
    expect(parseSrt(srt([without]))).toHaveLength(1)
    expect(parseSrt(srt([{ ...timed(40, 1), text: " something else" }]))).toHaveLength(1)
  })
})

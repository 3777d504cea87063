// Punctuation that a live session requested to add or remove: its hypotheses and its final result equal those of a file
// of the same samples; a stream's segments add up to the same text; text marked stable stays.
import { Effect } from "effect"
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { IncrementalTranscriber } from "#actors/live/IncrementalTranscriber.ts"
import { LiveAudio } from "#actors/live/LiveAudio.ts"
import type { LiveHypothesis } from "#domain/audio/LiveTranscript.ts"
import { joinTexts } from "#domain/audio/Transcript.ts"
import { withoutPunctuation } from "#domain/language/Punctuation.ts"
import {
  bytesOf,
  factsOf,
  fileAnswer,
  plain,
  samplesOf,
  transcriber,
} from "../support/engines/LiveTranscriber.ts"

const spoken = {
  plain: ["what", "is", "red", "fox", "3.5", "don't"],
  marked: ["what,", "is", "(red)", "fox.", "3.5", "don't", "—", "?!"],
  /** A mark now and then: some pieces have one, others none. */
  rare: [...Array.from({ length: 40 }, (_, i) => `w${i}`), "so."],
  chinese: ["你好", "，", "世界", "。", "3", "."],
} as const

const sayings = fc.constantFrom(
  { language: "en", words: spoken.plain },
  { language: "en", words: spoken.marked },
  { language: "en", words: spoken.rare },
  { language: "zh", words: spoken.chinese },
)

const hypothesesOf = (
  samples: Int16Array,
  points: ReadonlyArray<number>,
  options: ConstructorParameters<typeof IncrementalTranscriber>[2],
  words: ReadonlyArray<string>,
) => {
  const held = new LiveAudio(samples.length)
  const hearing = new IncrementalTranscriber<never>(held, factsOf(), options, transcriber(2, words))
  return points.map((until): LiveHypothesis => {
    held.append(bytesOf(samples.subarray(held.total, until)))
    Effect.runSync(hearing.close(until))
    return Effect.runSync(hearing.open(until, until === samples.length))
  })
}

const stable = ({ stableChars, text }: LiveHypothesis) => [...text].slice(0, stableChars).join("")

it("live, file and stream give the same text, with punctuation added or removed", () => {
  let changed = 0
  fc.assert(
    fc.property(
      fc
        .tuple(fc.integer({ min: 1, max: 12 }), fc.nat(1_000))
        .map(([seconds, seed]) => samplesOf(seconds, seed)),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 5 }),
      fc.boolean(),
      sayings,
      (samples, shares, punctuation, { language, words }) => {
        const points = [...shares, 1].map((share) => Math.floor(share * samples.length)).sort((a, b) => a - b)
        const options = { ...plain, language, punctuation }
        const told = hypothesesOf(samples, points, options, words)
        points.forEach((until, i) => {
          const part = samples.subarray(0, until)
          const segments: Array<string> = []
          const onSegment = ({ text }: { readonly text: string }) => void segments.push(text)
          const file = fileAnswer(part, options, 2, { words, onSegment })
          expect(told[i]!.text).toBe(file.text)
          expect(joinTexts(segments)).toBe(file.text)
          expect(file.segments.every(({ text }) => text.trim() !== "")).toBe(true)
          expect(told.at(-1)!.text.startsWith(stable(told[i]!))).toBe(true)
          const asModel = fileAnswer(part, { ...options, punctuation: undefined }, 2, { words })
          if (!punctuation) expect(file.text).toBe(withoutPunctuation(asModel.text.trim()))
          if (file.text !== asModel.text) changed++
        })
      },
    ),
    { numRuns: 60, endOnFailure: true },
  )
  expect(changed).toBeGreaterThan(10)
})

// The small pure rules of the recogniser: fallback, sampling, word times, prompts.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import * as Fallback from "#engines/shared/listening/Fallback.ts"
import { choose, probability, seededRandom } from "#engines/shared/listening/Sampling.ts"
import { interpolatedWords } from "#engines/shared/listening/Words.ts"
import { encodeHint, promptOf } from "#engines/whisper/Prompt.ts"
import { nonSpeechTokens } from "#engines/whisper/rules/NonSpeechTokens.ts"
import type { WhisperModel } from "#engines/whisper/WhisperModel.ts"

const good: Fallback.Measures = { compressionRatio: 1.2, avgLogprob: -0.2, noSpeechProb: 0.01 }

describe("Fallback", () => {
  it("climbs from the requested temperature", () => {
    expect(Fallback.temperatures(0)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1])
    expect(Fallback.temperatures(0.5)).toEqual([0.5, 0.6, 0.8, 1])
    expect(Fallback.temperatures(1)).toEqual([1])
  })

  it("retries loops and unsure texts, not silence", () => {
    expect(Fallback.needsRetry(good)).toBe(false)
    expect(Fallback.needsRetry({ ...good, compressionRatio: 2.5 })).toBe(true)
    expect(Fallback.needsRetry({ ...good, avgLogprob: -1.1 })).toBe(true)
    expect(Fallback.needsRetry({ ...good, avgLogprob: -1.1, noSpeechProb: 0.7 })).toBe(false)
    expect(Fallback.isSilence({ ...good, avgLogprob: -1.1, noSpeechProb: 0.7 })).toBe(true)
    // A confident text outweighs the no-speech probability.
    expect(Fallback.isSilence({ ...good, noSpeechProb: 0.99 })).toBe(false)
  })

  it("a loop compresses well", () => {
    expect(Fallback.compressionRatio("so I said ".repeat(40))).toBeGreaterThan(Fallback.compressionRatioLimit)
    const plain = "The children played in the garden until their mother called them for lunch."
    expect(Fallback.compressionRatio(plain)).toBeLessThan(1.5)
    expect(Fallback.compressionRatio("")).toBe(0)
  })
})

describe("Sampling", () => {
  it("is greedy at 0 and follows the softmax above it", () => {
    const logits = Float32Array.of(0, 1, 2, Number.NEGATIVE_INFINITY)
    expect(choose(logits, 0, () => 0.999).token).toBe(2)
    const random = seededRandom(7)
    const counts = [0, 0, 0, 0]
    for (let i = 0; i < 4000; i++) counts[choose(logits, 1, random).token]!++
    expect(counts[3]).toBe(0)
    expect(counts[2]! / 4000).toBeCloseTo(probability(logits, 2), 1)
    expect(probability(logits, 2)).toBeCloseTo(0.6652, 3)
  })

  it("equal seeds give equal draws; the log-probability is that of the unscaled logits", () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.float32Array({ minLength: 2, maxLength: 20, min: -30, max: 30, noNaN: true }),
        (seed, logits) => {
          const once = choose(logits, 0.7, seededRandom(seed))
          expect(choose(logits, 0.7, seededRandom(seed))).toEqual(once)
          expect(Math.exp(once.logprob)).toBeCloseTo(probability(logits, once.token), 5)
        },
      ),
    )
  })
})

describe("Words", () => {
  it("cover the segment in order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z'.]{1,9}$/), { minLength: 1 }),
        fc.double({ min: 0, max: 25, noNaN: true }),
        fc.double({ min: 0, max: 5, noNaN: true }),
        (list, start, length) => {
          const words = interpolatedWords(` ${list.join(" ")}`, start, start + length, "en")
          expect(words.map(({ word }) => word)).toEqual(list)
          expect(words[0]!.start).toBe(start)
          expect(words.at(-1)!.end).toBe(start + length)
          words.forEach((word, i) => {
            expect(word.end).toBeGreaterThanOrEqual(word.start)
            if (i > 0) expect(word.start).toBe(words[i - 1]!.end)
          })
        },
      ),
    )
  })

  it("finds words in a language without spaces", () => {
    const words = interpolatedWords("今天天气很好。", 0, 2, "zh").map(({ word }) => word)
    expect(words.join("")).toBe("今天天气很好。")
    expect(words.length).toBeGreaterThan(1)
    expect(words.at(-1)).toMatch(/。$/)
  })
})

const model = {
  layout: { endOfText: 100, timestampBegin: 110, maxInitialTimestamp: 50 },
  startOfTranscript: 101,
  noTimestamps: 109,
  startOfPrevious: 107,
  transcribe: 105,
  translate: 106,
  targetPositions: 448,
  byteTokens: false,
  encode: (text: string) => Array.from(text, (character) => character.charCodeAt(0) % 100),
} as unknown as WhisperModel
const ask = { languageToken: 102, conditioning: [], timestamps: true, seconds: 30 }

describe("Prompt", () => {
  it("has the published order", () => {
    expect(promptOf(model, ask)).toEqual({ tokens: [101, 102, 105], startAt: 0, sampleLimit: 224 })
    const led = promptOf(model, { ...ask, conditioning: [7, 8], timestamps: false })
    expect(led).toEqual({ tokens: [107, 7, 8, 101, 102, 105, 109], startAt: 3, sampleLimit: 224 })
    expect(promptOf(model, { ...ask, translate: true }).tokens).toEqual([101, 102, 106])
    expect(promptOf(model, { ...ask, languageToken: undefined }).tokens).toEqual([101])
  })

  it("keeps the last of the conditioning and always leaves tokens for the output", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 900 }),
        fc.boolean(),
        fc.double({ min: 0, max: 30, noNaN: true }),
        (n, byteTokens, seconds) => {
          const targetPositions = byteTokens ? 896 : 448
          const conditioning = Array.from({ length: n }, (_, i) => i)
          const prompt = promptOf(
            { ...model, byteTokens, targetPositions },
            { ...ask, conditioning, seconds },
          )
          expect(prompt.tokens.length + prompt.sampleLimit).toBeLessThanOrEqual(targetPositions)
          expect(prompt.tokens[prompt.startAt]).toBe(101)
          const kept = prompt.tokens.slice(1, Math.max(1, prompt.startAt))
          expect(kept).toEqual(kept.length === 0 ? [] : conditioning.slice(-kept.length))
          expect(prompt.sampleLimit).toBe(byteTokens ? Math.ceil(24 * seconds) + 30 : 224)
          if (!byteTokens) expect(kept.length).toBe(Math.min(n, 220))
        },
      ),
    )
  })

  it("encodes a hint with a space in front, and bounds it", () => {
    expect(encodeHint(model, "  ")).toEqual([])
    expect(encodeHint(model, " ab ")).toEqual([32, 97, 98])
    expect(encodeHint(model, "x".repeat(100_000)).length).toBe(4097)
  })
})

describe("nonSpeechTokens", () => {
  it("takes marks that are one token, and music notes by their first", () => {
    const vocabulary = new Map([
      ["#", [1]],
      [" #", [2]],
      [" -", [3]],
      ["((", [4]],
      ["♪", [5, 6]],
    ])
    expect(nonSpeechTokens((text) => vocabulary.get(text) ?? [90, 91])).toEqual([1, 2, 3, 4, 5, 90])
  })
})

import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { choose, seededRandom } from "#engines/shared/listening/Sampling.ts"
import { segmentsOf } from "#engines/whisper/rules/Seek.ts"
import {
  applyTimestampRules,
  suppressControls,
  suppressTimestamps,
  type TokenLayout,
} from "#engines/whisper/rules/TimestampRules.ts"

// A small vocabulary in the published order: text 0–9, end of text 10, controls 11–14, 41 timestamps from 15.
const layout: TokenLayout = { endOfText: 10, timestampBegin: 15, maxInitialTimestamp: 5 }
const vocabulary = 56
const time = (step: number) => layout.timestampBegin + step
const row = (more: Readonly<Record<number, number>> = {}) => {
  const logits = new Float32Array(vocabulary)
  for (const [token, value] of Object.entries(more)) logits[Number(token)] = value
  return logits
}
const allowed = (sampled: ReadonlyArray<number>, logits = row({ 3: 20 })) => {
  applyTimestampRules(logits, sampled, layout)
  return [...logits.keys()].filter((token) => logits[token] !== Number.NEGATIVE_INFINITY)
}
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

describe("TimestampRules", () => {
  it("begins with a timestamp of at most the initial limit", () => {
    expect(allowed([])).toEqual(range(time(0), time(6)))
  })

  it("after the first timestamp comes text or the end", () => {
    expect(allowed([time(2)])).toEqual(range(0, 15))
  })

  it("after a timestamp that closes text comes a timestamp, the same or later, or the end", () => {
    expect(allowed([time(0), 4, time(7)], row({ 10: 20 }))).toEqual([
      ...range(10, 15),
      ...range(time(7), vocabulary),
    ])
  })

  it("after a pair comes text", () => {
    expect(allowed([time(0), 4, time(7), time(7)])).toEqual(range(0, 15))
  })

  it("inside text a timestamp lies behind the segment's start, so that segments have a length", () => {
    expect(allowed([time(3), 4])).toEqual([...range(0, 15), ...range(time(4), vocabulary)])
  })

  it("prefers a timestamp when all of them together beat the best text token", () => {
    // 40 timestamps of logit 0 weigh e^3.69: more than one text token of 3, less than one of 4.
    expect(allowed([time(0), 4], row({ 3: 3 }))).toEqual(range(time(1), vocabulary))
    expect(allowed([time(0), 4], row({ 3: 4 }))).toContain(3)
  })

  it("suppresses controls but not the end, and all timestamps where none are wanted", () => {
    const logits = row()
    suppressControls(logits, layout)
    suppressTimestamps(logits, layout)
    const left = [...logits.keys()].filter((token) => logits[token] !== Number.NEGATIVE_INFINITY)
    expect(left).toEqual(range(0, 11))
  })
})

/** Any token sequence that a decoder can produce under the rules. */
const decodeWildly = (seed: number, temperature: number, bias: number): Array<number> => {
  const random = seededRandom(seed)
  const tokens: Array<number> = []
  while (tokens.length < 60) {
    const logits = Float32Array.from(
      { length: vocabulary },
      (_, i) => 6 * random() + (i >= layout.timestampBegin ? bias : 0),
    )
    suppressControls(logits, layout)
    applyTimestampRules(logits, tokens, layout)
    const { token, logprob } = choose(logits, temperature, random)
    expect(logits[token]).not.toBe(Number.NEGATIVE_INFINITY)
    expect(logprob).toBeLessThanOrEqual(1e-6)
    if (token === layout.endOfText) break
    tokens.push(token)
  }
  return tokens
}

const wild = fc.tuple(
  fc.integer(),
  fc.constantFrom(0, 0.4, 1),
  fc.double({ min: -6, max: 3, noNaN: true }),
  fc.double({ min: 0.01, max: 1.2, noNaN: true }),
)

describe("rules and seek together", () => {
  it("timestamps never decrease, and segments are ordered and inside the window", () => {
    fc.assert(
      fc.property(wild, ([seed, temperature, bias, seconds]) => {
        const tokens = decodeWildly(seed, temperature, bias)
        const times = tokens.filter((token) => token >= layout.timestampBegin)
        for (let i = 1; i < times.length; i++) expect(times[i]!).toBeGreaterThanOrEqual(times[i - 1]!)
        const { segments } = segmentsOf(tokens, layout, seconds)
        let end = 0
        for (const segment of segments) {
          expect(segment.start).toBeGreaterThanOrEqual(end)
          expect(segment.end).toBeGreaterThanOrEqual(segment.start)
          expect(segment.end).toBeLessThanOrEqual(seconds)
          expect(segment.tokens.length).toBeGreaterThan(0)
          end = segment.end
        }
      }),
      { numRuns: 400 },
    )
  })

  it("the window always moves on, never past its audio", () => {
    fc.assert(
      fc.property(wild, ([seed, temperature, bias, seconds]) => {
        const { consumedSeconds } = segmentsOf(decodeWildly(seed, temperature, bias), layout, seconds)
        expect(consumedSeconds).toBeGreaterThan(0)
        expect(consumedSeconds).toBeLessThanOrEqual(seconds)
      }),
      { numRuns: 400 },
    )
  })

  it("no text is lost unless it lies behind the place where the next window starts", () => {
    fc.assert(
      fc.property(wild, ([seed, temperature, bias, seconds]) => {
        const tokens = decodeWildly(seed, temperature, bias)
        const { segments, consumedSeconds } = segmentsOf(tokens, layout, seconds)
        const kept = segments.flatMap((segment) => segment.tokens)
        const text = tokens.filter((token) => token < layout.endOfText)
        expect(text.slice(0, kept.length)).toEqual(kept)
        // A decoder that consumes the whole window has no second chance.
        if (consumedSeconds === seconds) expect(kept).toEqual(text)
      }),
    )
  })

  it("prefers timestamps exactly where their summed probability is greater than the best text's", () => {
    const logit = fc.float({ min: -30, max: 30, noNaN: true })
    fc.assert(
      fc.property(
        fc.array(logit, { minLength: vocabulary, maxLength: vocabulary }),
        logit,
        (values, shift) => {
          const logits = Float32Array.from(values, (value, i) =>
            i < layout.timestampBegin ? value : value + shift,
          )
          const before = logits.slice()
          // After a text token both are allowed.
          applyTimestampRules(logits, [time(0), 4], layout)
          const times = before.subarray(time(1))
          const summed = times.reduce((sum, value) => sum + Math.exp(value), 0)
          const text = Math.exp(Math.max(...before.subarray(0, layout.timestampBegin)))
          // Where the two are equal but for rounding, either is right.
          if (Math.abs(summed / text - 1) < 1e-9) return
          expect(logits[4] === Number.NEGATIVE_INFINITY).toBe(summed > text)
        },
      ),
    )
  })
})

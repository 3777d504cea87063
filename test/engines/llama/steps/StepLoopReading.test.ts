// The step loop reads the logits behind tokens of a prompt: which rows, what is evaluated again, what it leaves alone.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { JobTerms } from "#engines/llama/steps/Job.ts"
import type { StepLoop } from "#engines/llama/steps/StepLoop.ts"
import { textOutlet } from "../../../support/engines/EngineHarness.ts"
import { letters, native, open, outcomeOf, say, termsOf, tokensOf } from "./ScriptedLoop.ts"
import { hashed, type ScriptedNative } from "./ScriptedNative.ts"

const predict = hashed(letters.length + 1)

/** The logarithm of the probability of a token behind these. */
const logProbability = (tokens: ReadonlyArray<number>, token: number): number => {
  const row = [...predict(tokens)]
  return row[token]! - Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0))
}

const read = async (
  scripted: ScriptedNative,
  loop: StepLoop,
  prompt: string,
  at: ReadonlyArray<number>,
  withinMs = 1e6,
) => {
  const masses: Array<ReadonlyArray<number>> = []
  let refused: string | undefined
  const out = textOutlet()
  const terms: JobTerms = {
    ...termsOf({ prompt }, out),
    reading: {
      at,
      rows: (count) => {
        for (let row = 0; row < count; row++)
          masses.push(scripted.native.direct!.masses(row, [[3], [3, 4], []]))
      },
      unless: {
        withinMs,
        refused: (why) => {
          refused = why
        },
      },
      end: { finishReason: "stop", completionTokens: 0 },
    },
  }
  const before = scripted.calls.length
  const job = loop.open(terms)
  const end = await outcomeOf(loop, job)
  await loop.release(job)
  const evaluated = scripted.calls.slice(before).flatMap((call) => call.flatMap(({ tokens }) => tokens))
  return { masses, refused, end, evaluated: evaluated.length }
}

const text = (most: number) => fc.string({ unit: fc.constantFrom(...letters), minLength: 3, maxLength: most })

describe("a reading", () => {
  it("gives the probabilities behind each of its tokens, also of a prompt that needs several calls", () =>
    fc.assert(
      fc.asyncProperty(text(300), fc.array(fc.nat(), { maxLength: 6 }), async (prompt, places) => {
        const last = prompt.length - 1
        const at = [...new Set([...places.map((place) => place % prompt.length), last])].sort((a, b) => a - b)
        const scripted = native()
        const { end, evaluated, masses, refused } = await read(scripted, open(scripted, 2), prompt, at)
        expect(refused).toBeUndefined()
        expect(end).toEqual({ finishReason: "stop", completionTokens: 0 })
        expect(evaluated).toBe(prompt.length)
        expect(masses).toHaveLength(at.length)
        for (const [i, place] of at.entries()) {
          const tokens = tokensOf(prompt.slice(0, place + 1))
          const [one, two] = [3, 4].map((token) => logProbability(tokens, token))
          const expected = [one!, Math.log(Math.exp(one!) + Math.exp(two!)), Number.NEGATIVE_INFINITY]
          for (const [k, value] of expected.entries()) {
            if (value === Number.NEGATIVE_INFINITY) expect(masses[i]![k]).toBe(value)
            else expect(masses[i]![k]).toBeCloseTo(value, 3)
          }
        }
      }),
      { numRuns: 100 },
    ))

  it("keeps what a sequence has of the prompt, and a reply finds what was read", async () => {
    const scripted = native()
    const loop = open(scripted, 2)
    await say(loop, { prompt: "instructionsandhistory", maxTokens: 1 })
    const first = await read(scripted, loop, "instructionsandhistorywords", [24, 26])
    expect(first.evaluated).toBe("instructionsandhistorywords".length - "instructionsandhistory".length)
    // The same words again: the first row that is read is behind the third letter of them.
    const again = await read(scripted, loop, "instructionsandhistorywords", [24, 26])
    expect(again).toEqual({ ...first, evaluated: 3 })
    const { out } = await say(loop, { prompt: "instructionsandhistorywordsend", maxTokens: 1 })
    expect(out.startedWith).toMatchObject([{ cachedTokens: "instructionsandhistorywords".length }])
  })

  it("evaluates nothing where it would take too long, or another conversation would lose much", async () => {
    const scripted = native()
    const loop = open(scripted, 1)
    const slow = await read(scripted, loop, "words", [4], 0)
    expect(slow).toEqual({
      masses: [],
      refused: "slow",
      end: { finishReason: "stop", completionTokens: 0 },
      evaluated: 0,
    })
    const other = letters.repeat(4)
    await say(loop, { prompt: other, maxTokens: 1 })
    expect(await read(scripted, loop, "words", [4])).toMatchObject({ refused: "occupied", evaluated: 0 })
    const { out } = await say(loop, { prompt: `${other}more`, maxTokens: 1 })
    expect(out.startedWith).toMatchObject([{ cachedTokens: other.length }])
  })
})

// The step loop on a native context in memory: replies under a hand-written constraint, several replies on one prompt, cancels
// and pauses.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { StepLoop } from "#engines/llama/steps/StepLoop.ts"
import { EngineError } from "#engines/protocol/Engine.ts"
import { type TextOutlet, textOf, textOutlet } from "../../../support/engines/EngineHarness.ts"
import {
  type Asked,
  letters,
  native,
  open,
  outcomeOf,
  type Part,
  say,
  sharingCosts,
  termsOf,
} from "./ScriptedLoop.ts"
import type { ScriptedNative } from "./ScriptedNative.ts"

const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ oneOf: fc.constantFrom("ab", "xyz", "aeiou", letters) }),
  fc.record({ certain: fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 9 }) }),
)
const shape = fc.array(part, { minLength: 1, maxLength: 8 })

/** A reply of 50 tokens. */
const fifty = Array.from({ length: 50 }, (): Part => ({ oneOf: letters }))

const fits = (text: string, parts: ReadonlyArray<Part>): boolean =>
  new RegExp(`^${parts.map((one) => ("oneOf" in one ? `[${one.oneOf}]` : one.certain)).join("")}$`).test(text)

describe("a constraint", () => {
  it("is kept, its runs are evaluated together, and the reply ends with it", () =>
    fc.assert(
      fc.asyncProperty(shape, fc.nat(), async (parts, seed) => {
        const scripted = native()
        const { end, text } = await say(open(scripted, 1), { parts, seed })
        expect(fits(text, parts)).toBe(true)
        expect(end).toEqual({ finishReason: "stop", completionTokens: text.length })
        // No token is evaluated twice; those of the end are not evaluated.
        const evaluated = scripted.calls.flatMap((call) => call.flatMap(({ tokens }) => tokens)).length
        expect(evaluated).toBeLessThanOrEqual("prompt".length + text.length)
      }),
      { numRuns: 100 },
    ))

  it("gives the same greedy text with runs and token by token, in fewer calls", () =>
    fc.assert(
      fc.asyncProperty(shape, async (parts) => {
        const [together, single] = [native(), native()]
        const fast = await say(open(together, 1), { parts, temperature: 0 })
        const slow = await say(open(single, 1), { parts, temperature: 0, runs: false })
        expect(fast.text).toBe(slow.text)
        expect(together.calls.length).toBeLessThanOrEqual(single.calls.length)
      }),
      { numRuns: 100 },
    ))

  it("gives a reply the same text alone and beside others", () =>
    fc.assert(
      fc.asyncProperty(fc.array(shape, { minLength: 2, maxLength: 4 }), async (shapes) => {
        const asked = shapes.map((parts, seed) => ({ parts, seed, prompt: `p${letters[seed]}` }))
        const alone = []
        for (const one of asked) alone.push((await say(open(native(), 1), one)).text)
        const loop = open(native(), 4)
        const together = await Promise.all(asked.map((one) => say(loop, one)))
        expect(together.map(({ text }) => text)).toEqual(alone)
      }),
      { numRuns: 50 },
    ))

  it("whose masks take long to find holds up no other reply, and changes no text", async () => {
    const parts = Array.from({ length: 4 }, (): Part => ({ oneOf: "xyz" }))
    const alone = await say(open(native(), 1), { parts })
    const loop = open(native(), 2)
    let slices = 0
    /** Slices until the other reply had ended. */
    let before = 0
    const slow = say(loop, { parts, find: () => ++slices % 1_000 === 0 })
    const other = say(loop, { prompt: "other", parts: fifty }).then((said) => {
      before = slices
      return said
    })
    expect((await other).end).toMatchObject({ completionTokens: 50 })
    expect((await slow).text).toBe(alone.text)
    // Of the first mask.
    expect(before).toBeLessThan(1_000)
    expect(slices).toBeGreaterThanOrEqual(1_000)
  })

  it("whose masks exceed their work ends with the reason, alone; the sequence serves the next", async () => {
    const exceeded = new EngineError({ reason: "InvalidInput", field: "format", detail: "too long" })
    const parts: ReadonlyArray<Part> = [{ oneOf: "x" }, { oneOf: "y" }]
    const loop = open(native(), 2)
    let slices = 0
    const find = () => {
      if (++slices > 5) throw exceeded
      return false
    }
    const job = loop.open(termsOf({ parts, find }, textOutlet()))
    const other = say(loop, { prompt: "other", parts: fifty })
    await expect(outcomeOf(loop, job)).rejects.toBe(exceeded)
    await loop.release(job)
    expect((await other).text).toBe((await say(open(native(), 1), { prompt: "other", parts: fifty })).text)
    expect((await say(loop, { parts })).text).toBe("xy")
  })

  it("stops looking for the mask of a reply that was cancelled", async () => {
    const loop = open(native(), 1)
    let slices = 0
    const found = Promise.withResolvers<void>()
    const find = () => {
      if (++slices === 3) found.resolve()
      return false
    }
    const job = loop.open(termsOf({ parts: [{ oneOf: "x" }], find }, textOutlet()))
    void outcomeOf(loop, job)
    await found.promise
    await loop.release(job)
    const at = slices
    expect((await say(loop, { parts: fifty })).end).toMatchObject({ completionTokens: 50 })
    expect(slices).toBe(at)
  })

  it("of several replies: their runs share calls, and each has the text that it has alone", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 4, max: 9 }), { minLength: 3, maxLength: 6 }),
        fc.integer({ min: 2, max: 4 }),
        async (runs, count) => {
          const parts = runs.flatMap(
            (length): ReadonlyArray<Part> => [{ oneOf: "ab" }, { certain: letters.slice(0, length) }],
          )
          const asked = Array.from({ length: count }, (_, seed) => ({
            parts,
            seed,
            prompt: `p${letters[seed]}`,
          }))
          const alone = []
          for (const one of asked) alone.push((await say(open(native(), 1), one)).text)
          const scripted = native()
          const loop = open(scripted, count, sharingCosts(count))
          const together = await Promise.all(asked.map((one) => say(loop, one)))
          expect(together.map(({ text }) => text)).toEqual(alone)
          const isShared = (call: (typeof scripted.calls)[number]) =>
            call.length > 1 && call[0]!.tokens.length > 1
          expect(scripted.calls.filter(isShared).length).toBeGreaterThan(0)
        },
      ),
      { numRuns: 50 },
    ))

  it("cut by the length: a beginning, with exactly so many tokens", () =>
    fc.assert(
      fc.asyncProperty(shape, fc.integer({ min: 1, max: 12 }), async (parts, maxTokens) => {
        const whole = await say(open(native(), 1), { parts, temperature: 0 })
        const cut = await say(open(native(), 1), { parts, temperature: 0, maxTokens })
        expect(cut.text).toBe(whole.text.slice(0, maxTokens))
        expect(cut.end).toEqual({
          finishReason: whole.text.length <= maxTokens ? "stop" : "length",
          completionTokens: cut.text.length,
        })
      }),
      { numRuns: 100 },
    ))

  it("delivers the tokens of a run together", async () => {
    const parts = [{ oneOf: "ab" }, { certain: "hello" }, { oneOf: "ab" }]
    const { out } = await say(open(native(), 1), { parts })
    expect(out.units.map(({ completionTokens, text }) => [text.slice(1), completionTokens])).toEqual([
      ["hello", 6],
      ["", 7],
    ])
  })
})

describe("several replies", () => {
  const count = 4
  const replies = async (loop: StepLoop, asked: Asked, outs: ReadonlyArray<TextOutlet>) => {
    const tally = { tokens: 0 }
    const [first, ...others] = outs.map((out, reply) =>
      termsOf({ ...asked, reply, seed: (asked.seed ?? 1) + reply }, out, tally),
    )
    const leader = loop.open(first!)
    const jobs = [leader, ...others.map((terms) => loop.open(terms, leader))]
    const ends = await Promise.all(jobs.map((job) => outcomeOf(loop, job)))
    return { jobs, ends }
  }

  it("are those of single requests with the next seeds", () =>
    fc.assert(
      fc.asyncProperty(fc.nat(), fc.option(shape, { nil: undefined }), async (seed, parts) => {
        const asked = { seed, maxTokens: 20, ...(parts === undefined ? {} : { parts }) }
        const singles = []
        for (let reply = 0; reply < count; reply++)
          singles.push((await say(open(native(), 1), { ...asked, seed: seed + reply })).text)
        const scripted = native()
        const loop = open(scripted, count)
        const outs = Array.from({ length: count }, textOutlet)
        const { ends, jobs } = await replies(loop, asked, outs)
        for (const job of jobs) await loop.release(job)
        expect(outs.map(textOf)).toEqual(singles)
        expect(outs.map(({ startedWith }) => startedWith.length)).toEqual([1, 0, 0, 0])
        const total = ends.reduce((sum, end) => sum + (end === "paused" ? 0 : end.completionTokens), 0)
        expect(
          Math.max(...outs.flatMap(({ units }) => units.map((unit) => unit.completionTokens))),
        ).toBeLessThanOrEqual(total)
        // The prompt is evaluated once.
        expect(scripted.copies.length).toBe(count - 1)
      }),
      { numRuns: 40 },
    ))

  it("released before their prompt was evaluated leave nothing behind", async () => {
    const loop = open(native(), count)
    const outs = Array.from({ length: count }, textOutlet)
    const leader = loop.open(termsOf({ maxTokens: 50 }, outs[0]!))
    const followers = outs.slice(1).map((out, at) => loop.open(termsOf({ reply: at + 1 }, out), leader))
    for (const job of [leader, ...followers]) loop.run(job, () => {})
    await Promise.all([leader, ...followers].map((job) => loop.release(job)))
    // All sequences are free, and the loop rests.
    const all = await Promise.all(
      Array.from({ length: count }, (_, seed) => say(loop, { seed, maxTokens: 5 })),
    )
    expect(all.every(({ end }) => end !== "paused")).toBe(true)
    await loop.close()
  })

  it("a reader that falls behind pauses all of them, and they go on with the same texts", async () => {
    const asked = { seed: 3, maxTokens: 12 }
    const expected = Array.from({ length: count }, textOutlet)
    await replies(open(native(), count), asked, expected)
    const shared = textOutlet()
    shared.onPush = () => {
      if (shared.units.length === 5) shared.pause()
    }
    const loop = open(native(), count)
    const outs = Array.from({ length: count }, () => shared)
    const { ends, jobs } = await replies(loop, asked, outs)
    expect(ends.filter((end) => end === "paused").length).toBeGreaterThan(0)
    expect(shared.units.length).toBeLessThan(5 + count)
    shared.resume()
    await Promise.all(
      jobs.map((job, at) => (ends[at] === "paused" ? outcomeOf(loop, job) : Promise.resolve())),
    )
    const texts = outs.map((_, reply) =>
      shared.units
        .filter(({ detail }) => (detail?.reply ?? 0) === reply)
        .map(({ text }) => text)
        .join(""),
    )
    expect(texts).toEqual(expected.map(textOf))
  })

  it("fail together if the evaluation of their prompt fails", async () => {
    const scripted = native()
    const failing: ScriptedNative = {
      ...scripted,
      native: { ...scripted.native, decode: () => Promise.reject(new Error("no memory")) },
    }
    const outs = Array.from({ length: count }, textOutlet)
    await expect(replies(open(failing, count), {}, outs)).rejects.toMatchObject({ detail: "no memory" })
  })
})

describe("log probabilities", () => {
  it("come with the text of their tokens, and only with that", async () => {
    const { end, out, text } = await say(open(native(), 1), {
      maxTokens: 20,
      terms: { logprobs: 2, stop: ["zz"] },
    })
    const logprobs = out.units.flatMap(({ detail }) => detail?.logprobs ?? [])
    expect(logprobs.map(({ token }) => token).join("")).toBe(text)
    expect(end).toMatchObject({ completionTokens: text.length })
    for (const { bytes, logprob, token, top } of logprobs) {
      expect(bytes).toEqual([token.charCodeAt(0)])
      expect(logprob).toBeLessThanOrEqual(top[0]!.logprob)
      expect(top).toHaveLength(2)
    }
  })

  it("those of a stop sequence are left out", async () => {
    const whole = await say(open(native(), 1), { seed: 5, maxTokens: 12 })
    const stop = whole.text.slice(4, 7)
    const cut = await say(open(native(), 1), { seed: 5, maxTokens: 12, terms: { logprobs: 0, stop: [stop] } })
    const logprobs = cut.out.units.flatMap(({ detail }) => detail?.logprobs ?? [])
    expect(cut.text).toBe(whole.text.slice(0, whole.text.indexOf(stop)))
    expect(logprobs.map(({ token }) => token).join("")).toBe(cut.text)
  })
})

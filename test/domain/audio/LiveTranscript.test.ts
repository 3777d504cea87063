// Properties of every live session: its steps fold to its hypotheses, text marked stable stays, frames of any size and
// windows of any length end in the answer of a file of the same samples, and reuse changes nothing but the cost.
import { readFileSync } from "node:fs"
import { Effect, Fiber } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { IncrementalTranscriber } from "#actors/live/IncrementalTranscriber.ts"
import { LiveAudio } from "#actors/live/LiveAudio.ts"
import { deltaOf, hypothesisOf, type LiveHypothesis, tokensOfText } from "#domain/audio/LiveTranscript.ts"
import { captionAfter } from "../../support/clients/LiveClient.ts"
import {
  audio,
  bytesOf,
  factsOf,
  fileAnswer,
  liveSession,
  plain,
  rateHz,
  transcriber,
} from "../../support/engines/LiveTranscriber.ts"

const runs = (numRuns: number) => ({ numRuns, endOnFailure: true })

const words = fc.array(fc.constantFrom(" a", " an", " the", " été", " 👋🏽", ".", ""), { maxLength: 8 })
const hypotheses = fc.array(
  fc
    .record({ closed: words, open: words })
    .map(({ closed, open }) => hypothesisOf(closed.join(""), open.join(""), { language: "en", audioMs: 0 })),
  { maxLength: 12 },
)

/** The reducer that docs/live.md gives to clients, unchanged. */
const documented = (() => {
  const page = readFileSync(new URL("../../../docs/live.md", import.meta.url), "utf8")
  const code = /```js\n(function captionAfter[\s\S]*?)```/.exec(page)?.[1]
  if (code === undefined) throw new Error("docs/live.md has no reducer")
  return new Function(`${code}; return captionAfter`)() as (caption: string, event: object) => string
})()

describe("the steps", () => {
  it("fold to the server's hypothesis at every revision, whichever were left out", () => {
    fc.assert(
      fc.property(hypotheses, fc.array(fc.boolean()), (all, kept) => {
        const told = all.filter((_, i) => kept[i] !== false)
        let shown = ""
        let caption = ""
        let byDocs = ""
        told.forEach((hypothesis, i) => {
          const step = deltaOf(shown, hypothesis, i + 1)
          shown = hypothesis.text
          caption = captionAfter(caption, step)
          byDocs = documented(byDocs, { type: "transcript.text.delta", ...step })
          expect(caption).toBe(hypothesis.text)
          expect(byDocs).toBe(hypothesis.text)
          expect(step.rev).toBe(i + 1)
        })
      }),
    )
  })

  it("append wherever the text only grew", () => {
    const at = (text: string): LiveHypothesis => ({ text, stableChars: 0, language: "en", audioMs: 0 })
    expect(deltaOf("a b", at("a b c"), 2)).toMatchObject({ op: "append", delta: " c" })
    expect(deltaOf("a b", at("a b"), 2)).toMatchObject({ op: "append", delta: "" })
    expect(deltaOf("a b", at("a"), 2)).toMatchObject({ op: "replace", delta: "a" })
    expect(deltaOf("", at("a"), 1)).toMatchObject({ op: "append", delta: "a" })
  })

  it("count stable characters as people do, not as UTF-16", () => {
    expect(hypothesisOf(" 👋 hé ", "", { language: "en", audioMs: 0 })).toMatchObject({
      text: "👋 hé",
      stableChars: 4,
    })
  })
})

/** A whole session: frames of these sizes (in samples), an event loop tick after some of them. */
const session = async (samples: Int16Array, sizes: ReadonlyArray<number>, windowSeconds: number) => {
  const { session: live } = liveSession(transcriber(), { windowSeconds })
  const heard: Array<LiveHypothesis> = []
  const listening = Effect.gen(function* () {
    for (;;) heard.push(yield* live.nextHypothesis)
  })
  const run = Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(live.run, { startImmediately: true })
    yield* Effect.forkChild(listening, { startImmediately: true })
    for (let at = 0, i = 0; at < samples.length; i++) {
      const size = sizes[i % sizes.length]!
      live.push(bytesOf(samples.subarray(at, at + size)), 0)
      at += size
      if (size % 3 === 0) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
    live.stop("stop")
    return yield* Fiber.join(fiber)
  })
  const last = await Effect.runPromise(run)
  return { heard, last: last.hypothesis }
}

const sizes = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 401, max: 20_000 }), fc.constant(160_000)),
  { minLength: 1, maxLength: 6 },
)
const windows = fc.constantFrom(0.25, 0.5, 1, 1.7, 3, 10)

const codePoints = (text: string, count: number) => [...text].slice(0, count).join("")

describe("a session", () => {
  it("ends in the file's answer, whatever the frames and the window", async () => {
    await fc.assert(
      fc.asyncProperty(audio(12), sizes, windows, async (samples, frames, windowSeconds) => {
        const { last } = await session(samples, frames, windowSeconds)
        expect(last.text).toBe(fileAnswer(samples).text)
        expect(last.audioMs).toBe(Math.floor(samples.length / 16))
      }),
      runs(60),
    )
  })

  it("never takes back what it called stable", async () => {
    let moved = 0
    await fc.assert(
      fc.asyncProperty(audio(12), sizes, windows, async (samples, frames, windowSeconds) => {
        const { heard, last } = await session(samples, frames, windowSeconds)
        const all = [...heard, last]
        all.forEach(({ stableChars, text }, i) => {
          expect(stableChars).toBeLessThanOrEqual([...text].length)
          const next = all[i + 1]
          if (next === undefined) return
          expect(next.stableChars).toBeGreaterThanOrEqual(stableChars)
          expect(codePoints(next.text, stableChars)).toBe(codePoints(text, stableChars))
          expect(next.audioMs).toBeGreaterThanOrEqual(all[i]!.audioMs)
          if (next.text !== text) moved++
        })
      }),
      // Of random sessions few have many revisions, and a run of 400 may have next to none.
      { ...runs(400), seed: 20_261_127 },
    )
    // The audio does make the recogniser revise its hypothesis.
    expect(moved).toBeGreaterThan(5)
  })
})

/** The hypotheses at these points (seconds), with or without reuse. */
const hypothesesAt = (
  samples: Int16Array,
  points: ReadonlyArray<number>,
  fromScratch: boolean,
  piece: number,
) => {
  const held = new LiveAudio(samples.length)
  let calls = 0
  let decoded = 0
  const inner = transcriber(piece)
  const hearing = new IncrementalTranscriber(
    held,
    factsOf(piece),
    { ...plain, prompt: "hint", fromScratch },
    (request, onSegment, final) => {
      calls++
      decoded += request.samples.length
      return inner(request, onSegment, final)
    },
  )
  const texts: Array<string> = []
  for (const until of points) {
    held.append(bytesOf(samples.subarray(held.total, until)))
    Effect.runSync(hearing.close(until))
    texts.push(Effect.runSync(hearing.open(until, false)).text)
  }
  return { texts, calls, decoded, held: held.capacitySamples }
}

describe("reuse", () => {
  it("gives at every window the text of a fresh pass over all audio", () => {
    fc.assert(
      fc.property(
        audio(40),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 8 }),
        fc.constantFrom(0.7, 2, 8, 29.9, 30),
        (samples, shares, piece) => {
          const points = shares.map((share) => Math.floor(share * samples.length)).sort((a, b) => a - b)
          const reused = hypothesesAt(samples, points, false, piece)
          const fresh = hypothesesAt(samples, points, true, piece)
          expect(reused.texts).toEqual(fresh.texts)
          points.forEach((until, i) => {
            const file = fileAnswer(samples.subarray(0, until), { ...plain, prompt: "hint" }, piece)
            expect(reused.texts[i]).toBe(file.text)
          })
        },
      ),
      runs(40),
    )
  })

  it("costs by the second, not by the second squared", () => {
    const samples = new Int16Array(60 * rateHz).map((_, i) => ((i * 7_919) % 8_191) - 4_096)
    const points = Array.from({ length: 60 }, (_, i) => (i + 1) * rateHz)
    const reused = hypothesesAt(samples, points, false, 4)
    const fresh = hypothesesAt(samples, points, true, 4)
    expect(reused.texts.at(-1)).toBe(fresh.texts.at(-1))
    expect(reused.decoded / fresh.decoded).toBeLessThan(0.15)
    // The open piece and a window of slack, not a minute.
    expect(reused.held).toBeLessThanOrEqual(16 * rateHz)
  })
})

describe("tokens of a text", () => {
  const token = (text: string) => ({ bytes: [...Buffer.from(text)], logprob: -1 })

  it("are those that spell it", () => {
    const tokens = [" hé", "llo", " ", "world"].map(token)
    expect(
      ["", "hé", "hél", "héllo", "héllo ", "héllo world"].map((text) => tokensOfText(tokens, text)),
    ).toEqual([0, 1, 1, 2, 3, 4])
    expect(tokensOfText(tokens, "hello")).toBe(0)
    expect(tokensOfText([], "a")).toBe(0)
    expect(tokensOfText([token("a")], "ab")).toBe(0)
  })
})

// The caption reducer and subtitles.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { captionAfter, noCaption, partsOf } from "../../captions/Captions.js"
import { cuesOfHistory, cuesOfSegments, srtOf, vttOf } from "../../captions/Cues.js"

const delta = (op: "append" | "replace", text: string, stable: number, audioMs: number) => ({
  type: "transcript.text.delta",
  delta: text,
  op,
  stable_chars: stable,
  audio_ms: audioMs,
})
const done = (text: string, duration: number) => ({
  type: "transcript.text.done",
  text,
  duration,
  language: "en",
})
const captioned = (...events: ReadonlyArray<Record<string, unknown>>) =>
  events.reduce(captionAfter, noCaption)

describe("the caption", () => {
  it("appends, replaces and ends", () => {
    expect(captioned(delta("append", "The", 0, 1_000), delta("append", " cat", 0, 2_000)).text).toBe(
      "The cat",
    )
    expect(
      captioned(delta("append", "The cab", 0, 1_000), delta("replace", "The cat", 4, 2_000)),
    ).toMatchObject({
      text: "The cat",
      stableChars: 4,
      audioMs: 2_000,
    })
    const final = captioned(delta("append", "The cab", 0, 1_000), done("The cat sat.", 1.5005))
    expect(final).toMatchObject({ text: "The cat sat.", audioMs: 1_501, isFinal: true })
    expect(partsOf(final)).toEqual({ firm: "The cat sat.", soft: "" })
  })

  it("does not change with events of other kinds", () => {
    const before = captioned(delta("append", "a", 0, 1))
    expect(captionAfter(before, { type: "warning", warning: "session limit" })).toBe(before)
    expect(captionAfter(before, { type: "speech_started", audio_ms: 3 })).toBe(before)
  })

  it("equals what the node meant, whichever operations it chose", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" }), { maxLength: 12 }), (texts) => {
        let caption = noCaption
        for (const [at, text] of texts.entries()) {
          const isSuffix = text.startsWith(caption.text)
          const event = isSuffix
            ? delta("append", text.slice(caption.text.length), 0, at)
            : delta("replace", text, 0, at)
          caption = captionAfter(caption, event)
          expect(caption.text).toBe(text)
        }
        expect(caption.history.map(({ text }) => text)).toEqual(texts)
      }),
    )
  })

  it("is cut into firm and soft at a code point", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat({ max: 30 }), (text, stableChars) => {
        const { firm, soft } = partsOf({ ...noCaption, text, stableChars })
        expect(firm + soft).toBe(text)
        expect([...firm].length).toBe(Math.min(stableChars, [...text].length))
      }),
    )
  })
})

const words = fc.array(fc.stringMatching(/^[a-z]{1,12}[.?]?$/), { maxLength: 60 })

describe("cues of a live session", () => {
  it("hold every word once, in order, in times that do not overlap and end with the audio", () => {
    fc.assert(
      fc.property(words, fc.array(fc.nat({ max: 60 }), { maxLength: 12 }), (said, steps) => {
        const lengths = steps.toSorted((a, b) => a - b)
        const history = [
          ...lengths.map((length, at) => ({
            audioMs: (at + 1) * 1_000,
            text: said.slice(0, length).join(" "),
          })),
          { audioMs: (lengths.length + 1) * 1_000, text: said.join(" ") },
        ]
        const cues = cuesOfHistory(history)
        expect(cues.flatMap(({ text }) => text.split(" ")).filter((word) => word !== "")).toEqual(said)
        let end = 0
        for (const cue of cues) {
          expect(cue.startMs).toBeGreaterThanOrEqual(end)
          expect(cue.endMs).toBeGreaterThan(cue.startMs)
          end = cue.endMs
        }
      }),
    )
  })

  it("take the time at which a caption first had a word at its place, also where it was wrong in between", () => {
    const cues = cuesOfHistory([
      { audioMs: 1_000, text: "Good morn" },
      { audioMs: 2_000, text: "Good morning to you." },
      { audioMs: 3_000, text: "Good morning to you. How" },
      { audioMs: 3_500, text: "Good morning to you. How are you today?" },
    ])
    expect(cues).toEqual([
      { startMs: 0, endMs: 2_000, text: "Good morning to you." },
      { startMs: 2_000, endMs: 3_500, text: "How are you today?" },
    ])
  })
})

it("SRT and WebVTT have their forms, and no text can break them", () => {
  const cues = cuesOfSegments([
    { start: 0, end: 1.5, text: " Hello --> there.\n" },
    { start: 3_661.001, end: 3_661.001, text: "a < b & c" },
    { start: 5, end: 6, text: "  " },
  ])
  expect(srtOf(cues)).toBe(
    "1\n00:00:00,000 --> 00:00:01,500\nHello → there.\n\n2\n01:01:01,001 --> 01:01:01,002\na < b & c\n",
  )
  expect(vttOf(cues)).toBe(
    "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello → there.\n\n01:01:01.001 --> 01:01:01.002\na &lt; b &amp; c\n",
  )
})

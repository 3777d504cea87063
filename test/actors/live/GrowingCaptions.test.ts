// A live session on an engine whose text only grows, in pure functions: a word for each whole second, pieces of four seconds, and a last word for
// a rest at the end of the audio.
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { IncrementalTranscriber, type LiveCall } from "#actors/live/IncrementalTranscriber.ts"
import { LiveAudio } from "#actors/live/LiveAudio.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { growingHypothesis } from "#domain/audio/LiveTranscript.ts"
import type { TranscribeRequest, TranscriptionFacts } from "#engines/protocol/Transcription.ts"
import { runs } from "../../support/groups/Runs.ts"

const second = 16_000
const pieceSeconds = 4

const facts: TranscriptionFacts = {
  slots: 1,
  windowSeconds: 5,
  closedSeconds: 4.5,
  languages: ["en"],
  grows: { seconds: 1, aheadSeconds: 0, costMs: 1 },
  summary: "",
}

/** Samples carry the number of their second, so a word shows which audio was sent. */
const audioOf = (samples: number): Int16Array =>
  Int16Array.from({ length: samples }, (_, at) => Math.floor(at / second))

interface Asked extends TranscribeRequest {
  readonly call: LiveCall
}

const session = () => {
  const asked: Array<Asked> = []
  const audio = new LiveAudio(200 * second)
  const transcriber = new IncrementalTranscriber<never>(
    audio,
    facts,
    { language: undefined, prompt: "", fromScratch: false },
    (request, onSegment, call) =>
      Effect.sync(() => {
        asked.push({ ...request, call })
        const { caption = false, last, samples } = request
        const seconds = Math.floor(samples.length / second)
        const ended = seconds >= pieceSeconds
        const spoken = Math.min(seconds, pieceSeconds)
        let text = ""
        for (let at = 0; at < spoken; at++) text += ` w${Math.round(samples[at * second]! * 32_768)}`
        const consumedSamples = ended ? pieceSeconds * second : samples.length
        if (!ended && !caption && last && samples.length % second > 0) text += " rest"
        if (text !== "")
          onSegment({
            start: 0,
            end: 1,
            text,
            tokens: [],
            temperature: 0,
            avgLogprob: 0,
            compressionRatio: 1,
            noSpeechProb: 0,
          })
        return { language: "en", consumedSamples, previousTokens: [] }
      }),
  )
  return { asked, audio, transcriber }
}

/** What a file of so many samples says. */
const expected = (samples: number): string => {
  const words = Array.from({ length: Math.floor(samples / second) }, (_, at) => `w${at}`)
  return [...words, ...(samples % second > 0 ? ["rest"] : [])].join(" ")
}

describe("an engine whose text only grows", () => {
  it("has captions that are only appended to, and the final text of all audio, for any packets and previews", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.integer({ min: 1, max: 40_000 }), fc.constantFrom("caption", "preview", "close", "")),
          {
            maxLength: 25,
          },
        ),
        (packets) => {
          const { asked, audio, transcriber } = session()
          const all = audioOf(packets.reduce((sum, [size]) => sum + size, 0))
          let shown = ""
          let stable = ""
          for (const [size, what] of packets) {
            audio.append(s16ToBytes(all.subarray(audio.total, audio.total + size)))
            if (what === "preview")
              expect(Effect.runSync(transcriber.open(audio.total, true)).text).toBe(expected(audio.total))
            if (what === "close") Effect.runSync(transcriber.close(audio.total))
            if (what !== "caption") continue
            const caption = Effect.runSync(transcriber.caption(() => audio.total))
            expect(caption.text.startsWith(shown)).toBe(true)
            expect(caption.text.startsWith(stable)).toBe(true)
            shown = caption.text
            stable = shown.slice(0, caption.stableChars)
          }
          const final = Effect.runSync(transcriber.open(audio.total, true)).text
          expect(final).toBe(expected(all.length))
          expect(final.startsWith(shown)).toBe(true)
          for (const { call, caption, last, samples } of asked) {
            expect(caption === true).toBe(call === "caption")
            if (call === "caption") expect(last).toBe(false)
            expect(samples.length).toBeLessThanOrEqual(5 * second)
          }
        },
      ),
      { numRuns: runs(60, 3_000) },
    )
  })

  it("closes a piece with the caption that finds its end, and drops its audio", () => {
    const { asked, audio, transcriber } = session()
    for (let at = 1; at <= 30; at++) {
      audio.append(s16ToBytes(audioOf(at * second).subarray((at - 1) * second)))
      Effect.runSync(transcriber.caption(() => audio.total))
      expect(audio.heldSamples).toBeLessThanOrEqual(pieceSeconds * second)
    }
    // The same audio is never sent under the name of another piece.
    const streams = new Map<number, number>()
    for (const { samples, stream } of asked) {
      const from = Math.round(samples[0]! * 32_768)
      expect(streams.get(stream!) ?? from).toBe(from)
      streams.set(stream!, from)
    }
    expect(streams.size).toBe(8)
  })

  it("marks all words but the last one as stable", () => {
    const rest = { language: "en", audioMs: 0 }
    expect(growingHypothesis(" one two thr", rest)).toEqual({ ...rest, text: "one two thr", stableChars: 7 })
    expect(growingHypothesis("one", rest).stableChars).toBe(0)
    expect(growingHypothesis("  ", rest)).toEqual({ ...rest, text: "", stableChars: 0 })
  })
})

// A file through an engine, window by window, whatever the decoder's pieces and the engine's appetite: every sample is
// heard once and in order, the last window is called so and no other, and a file that is continued is heard as if it
// had never been interrupted.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { transcribeFile } from "#actors/jobs/FileTranscription.ts"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import type { TranscriptProgress } from "#domain/audio/Transcript.ts"
import type { TranscribeRequest, TranscriptionFacts } from "#engines/protocol/Transcription.ts"
import { inMemory, memoryAudio } from "../../support/audio/MemoryAudio.ts"
import { stubModel } from "../../support/engines/StubModel.ts"

const rateHz = 16_000
const windowSeconds = 2

type Run = ModelHandle<"transcription">["run"]

const flow = { pause: () => {}, resume: () => {} }

const anyFacts: TranscriptionFacts = {
  slots: 1,
  windowSeconds,
  languages: ["en"],
  detectsLanguage: false,
  summary: "",
}

interface Ears {
  /** Samples of each window that are finished with, by turns; more than there are means all. */
  readonly consumes: ReadonlyArray<number>
  readonly closedSeconds?: number
}

/** An engine that hears the number of each second's first sample, and notes what it was asked. */
const ears = ({ closedSeconds, consumes }: Ears) => {
  const asked: Array<TranscribeRequest> = []
  const run: Run = (request, listener) =>
    Effect.sync(() => {
      const asks = inMemory(request)
      const turn = asked.push(asks) - 1
      listener.started({ language: "en" }, flow)
      const wanted = consumes[turn % consumes.length]!
      // A whole last window is consumed whole, as engines do.
      const consumedSamples = asks.last ? asks.samples.length : Math.min(wanted, asks.samples.length)
      const end = consumedSamples / rateHz
      listener.unit({
        start: 0,
        end,
        text: ` ${Math.round((asks.samples[0] ?? 0) * 1e6)}+${consumedSamples}`,
        tokens: [],
        temperature: 0,
        avgLogprob: 0,
        compressionRatio: 1,
        noSpeechProb: 0,
        words: [{ word: "x", start: 0, end }],
      })
      return { language: "en", consumedSamples, previousTokens: [turn] }
    })
  const facts = {
    ...anyFacts,
    ...(closedSeconds === undefined ? {} : { closedSeconds }),
  }
  return { asked, model: stubModel("transcription", run, { facts }) }
}

/** Every sample is its own number, in millionths. */
const audio = (count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => i / 1e6)

const options = { language: undefined, prompt: "", temperature: 0, punctuation: undefined, words: true }

/** Hears a second after the other of what it is given, as several windows of one call. */
const earsTogether = () => {
  const asked: Array<TranscribeRequest> = []
  const run: Run = (request, listener) =>
    Effect.sync(() => {
      const asks = inMemory(request)
      asked.push(asks)
      listener.started({ language: "en" }, flow)
      const { length } = asks.samples
      let consumedSamples = 0
      for (;;) {
        const windowAt = consumedSamples
        consumedSamples += Math.min(rateHz, length - consumedSamples)
        const rest = length - consumedSamples
        const more = asks.together === true && (asks.last ? rest > 0 : rest > rateHz)
        listener.unit({
          start: 0,
          end: (consumedSamples - windowAt) / rateHz,
          text: ` ${Math.round((asks.samples[windowAt] ?? 0) * 1e6)}+${consumedSamples - windowAt}`,
          tokens: [],
          temperature: 0,
          avgLogprob: 0,
          compressionRatio: 1,
          noSpeechProb: 0,
          ...(windowAt === 0 ? {} : { windowAt }),
          ...(more ? { finishedSamples: consumedSamples } : {}),
        })
        if (!more) return { language: "en", consumedSamples, previousTokens: [] }
      }
    })
  const facts = { ...anyFacts, windowSeconds: 2, closedSeconds: 1, togetherSeconds: 4 }
  return { asked, model: stubModel("transcription", run, { facts }) }
}

interface Played {
  readonly samples: Float32Array
  readonly sizes: ReadonlyArray<number>
  readonly from?: TranscriptProgress
  readonly onProgress?: (progress: TranscriptProgress) => void
  readonly onHeard?: (samples: number) => void
  readonly background?: boolean
}

const play = (
  model: ModelHandle<"transcription">,
  { background = false, from, onHeard, onProgress, samples, sizes }: Played,
) =>
  transcribeFile<never>({
    model,
    options,
    background,
    from,
    // A little more than two windows: the least that a file can be heard with.
    audio: memoryAudio(samples, { sizes, start: from?.samples ?? 0, atMostWaiting: 10 * rateHz }),
    beforeWindow: () => Effect.void,
    onStarted: () => {},
    onSegment: () => {},
    onHeard: (count) => onHeard?.(count),
    onProgress: (progress) => onProgress?.({ ...progress, segments: [...progress.segments] }),
  })

const sizes = fc.array(fc.integer({ min: 1, max: 3 * rateHz }), { minLength: 1, maxLength: 4 })
const consumes = fc.array(fc.integer({ min: rateHz / 10, max: 3 * rateHz }), { minLength: 1, maxLength: 4 })
const length = fc.oneof(
  fc.integer({ min: 0, max: 10 * rateHz }),
  fc.integer({ min: 1, max: 4 }).map((windows) => windows * windowSeconds * rateHz),
)

describe("transcribeFile", () => {
  it("hears every sample once, in order, and calls the last window so", async () => {
    await fc.assert(
      fc.asyncProperty(
        length,
        sizes,
        consumes,
        fc.constantFrom(undefined, 1.25),
        async (count, cut, eats, closedSeconds) => {
          const { asked, model } = ears({
            consumes: eats,
            ...(closedSeconds === undefined ? {} : { closedSeconds }),
          })
          const transcript = await Effect.runPromise(play(model, { samples: audio(count), sizes: cut }))
          const longest = closedSeconds === undefined ? windowSeconds * rateHz : closedSeconds * rateHz + 1
          let at = 0
          transcript.segments.forEach((segment, i) => {
            const [first, consumed] = segment.text.trim().split("+").map(Number) as [number, number]
            expect(first).toBe(at)
            expect(segment.start).toBeCloseTo(at / rateHz, 9)
            at += consumed
            expect(segment.end).toBeCloseTo(at / rateHz, 9)
            expect(segment.words?.[0]?.end).toBeCloseTo(at / rateHz, 9)
            expect(asked[i]!.samples.length).toBeLessThanOrEqual(longest)
            expect(asked[i]!.previousTokens).toEqual(i === 0 ? [] : [i - 1])
          })
          expect(at).toBe(count)
          expect(transcript.duration).toBe(count / rateHz)
          expect(asked.map(({ last }) => last)).toEqual(asked.map((_, i) => i === asked.length - 1))
        },
      ),
      { numRuns: 150 },
    )
  })

  it("hands several windows over at once, but a job's one by one, and tells how far each got", async () => {
    await fc.assert(
      fc.asyncProperty(length, sizes, fc.boolean(), async (count, cut, background) => {
        const { asked, model } = earsTogether()
        const heard: Array<number> = []
        const onHeard = (samples: number) => void heard.push(samples)
        const played = { samples: audio(count), sizes: cut, background, onHeard }
        const transcript = await Effect.runPromise(play(model, played))
        let at = 0
        for (const { end, start, text, windowStart } of transcript.segments) {
          const [first, consumed] = text.trim().split("+").map(Number) as [number, number]
          expect([first, windowStart]).toEqual([at, at / rateHz])
          expect(start).toBeCloseTo(at / rateHz, 9)
          at += consumed
          expect(end).toBeCloseTo(at / rateHz, 9)
        }
        expect(at).toBe(count)
        // Every window's end once, in order.
        const ends = transcript.segments.map(({ end }) => Math.round(end * rateHz))
        expect(heard).toEqual(ends)
        const longest = background ? rateHz + 1 : 4 * rateHz
        for (const { samples, together } of asked) {
          expect(samples.length).toBeLessThanOrEqual(longest)
          expect(together ?? false).toBe(!background)
        }
      }),
      { numRuns: 100 },
    )
  })

  it("goes on where it was interrupted, as if it had not been", async () => {
    await fc.assert(
      fc.asyncProperty(
        length,
        sizes,
        sizes,
        consumes,
        fc.nat(),
        async (count, cut, otherCut, eats, where) => {
          const samples = audio(count)
          const stops: Array<TranscriptProgress> = []
          const whole = await Effect.runPromise(
            play(ears({ consumes: eats }).model, {
              samples,
              sizes: cut,
              onProgress: (stop) => void stops.push(stop),
            }),
          )
          fc.pre(stops.length > 1)
          const nth = where % (stops.length - 1)
          const from = stops[nth]!
          // The engine's appetite goes on as well.
          const rest = [...eats, ...eats].slice(
            (nth + 1) % eats.length,
            ((nth + 1) % eats.length) + eats.length,
          )
          const { model } = ears({ consumes: rest })
          const continued = await Effect.runPromise(play(model, { samples, sizes: otherCut, from }))
          expect(continued).toEqual(whole)
        },
      ),
      { numRuns: 100 },
    )
  })

  it("moves on where an engine says that it has consumed nothing", async () => {
    const { asked, model } = ears({ consumes: [0] })
    const transcript = await Effect.runPromise(play(model, { samples: audio(5 * rateHz), sizes: [rateHz] }))
    expect(asked).toHaveLength(3)
    expect(transcript.duration).toBe(5)
  })
})

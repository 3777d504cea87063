// Transcribes a file window by window, with any sizes of decoded pieces and any number of samples that the engine consumes. Every
// sample is transcribed once and in order, only the last window is marked as last, and a file that is continued after an
// interruption has the same transcript as without it.
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
  summary: "",
}

interface Consumption {
  /** Samples that the engine consumes of each window, repeated cyclically; more than the window has means all of them. */
  readonly consumes: ReadonlyArray<number>
  readonly closedSeconds?: number
}

/** An engine that transcribes a window as the number of its first sample and of the consumed samples. Records its requests. */
const countingEngine = ({ closedSeconds, consumes }: Consumption) => {
  const asked: Array<TranscribeRequest> = []
  const run: Run = (request, listener) =>
    Effect.sync(() => {
      const asks = inMemory(request)
      const nth = asked.push(asks) - 1
      listener.started?.({ language: "en" }, flow)
      const wanted = consumes[nth % consumes.length]!
      // Engines consume the whole last window.
      const consumedSamples = asks.last ? asks.samples.length : Math.min(wanted, asks.samples.length)
      const end = consumedSamples / rateHz
      listener.take({
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
      return { language: "en", consumedSamples, previousTokens: [nth] }
    })
  const facts = {
    ...anyFacts,
    ...(closedSeconds === undefined ? {} : { closedSeconds }),
  }
  return { asked, model: stubModel("transcription", run, { facts }) }
}

/** The value of every sample is its index, in millionths. */
const audio = (count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => i / 1e6)

const options = { language: undefined, prompt: "", temperature: 0, punctuation: undefined, words: true }

/** An engine that transcribes its audio second by second, as several windows of one call. */
const multiWindowEngine = () => {
  const asked: Array<TranscribeRequest> = []
  const run: Run = (request, listener) =>
    Effect.sync(() => {
      const asks = inMemory(request)
      asked.push(asks)
      listener.started?.({ language: "en" }, flow)
      const { length } = asks.samples
      let consumedSamples = 0
      for (;;) {
        const windowAt = consumedSamples
        consumedSamples += Math.min(rateHz, length - consumedSamples)
        const rest = length - consumedSamples
        const more = asks.together === true && (asks.last ? rest > 0 : rest > rateHz)
        listener.take({
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

interface FileRun {
  readonly samples: Float32Array
  readonly sizes: ReadonlyArray<number>
  readonly from?: TranscriptProgress
  readonly onProgress?: (progress: TranscriptProgress) => void
  readonly onTranscribed?: (samples: number) => void
  readonly background?: boolean
}

const transcribe = (
  model: ModelHandle<"transcription">,
  { background = false, from, onTranscribed, onProgress, samples, sizes }: FileRun,
) =>
  transcribeFile<never>({
    model,
    options,
    background,
    from,
    // A little more than two windows, the least that a file can be transcribed with.
    audio: memoryAudio(samples, { sizes, start: from?.samples ?? 0, atMostWaiting: 10 * rateHz }),
    beforeWindow: () => Effect.void,
    onStarted: () => {},
    onSegment: () => {},
    onTranscribed: (count) => onTranscribed?.(count),
    onProgress: (progress) => onProgress?.({ ...progress, segments: [...progress.segments] }),
  })

const sizes = fc.array(fc.integer({ min: 1, max: 3 * rateHz }), { minLength: 1, maxLength: 4 })
const consumes = fc.array(fc.integer({ min: rateHz / 10, max: 3 * rateHz }), { minLength: 1, maxLength: 4 })
const length = fc.oneof(
  fc.integer({ min: 0, max: 10 * rateHz }),
  fc.integer({ min: 1, max: 4 }).map((windows) => windows * windowSeconds * rateHz),
)

describe("transcribeFile", () => {
  it("transcribes every sample once, in order, and marks the last window", async () => {
    await fc.assert(
      fc.asyncProperty(
        length,
        sizes,
        consumes,
        fc.constantFrom(undefined, 1.25),
        async (count, cut, amounts, closedSeconds) => {
          const { asked, model } = countingEngine({
            consumes: amounts,
            ...(closedSeconds === undefined ? {} : { closedSeconds }),
          })
          const transcript = await Effect.runPromise(transcribe(model, { samples: audio(count), sizes: cut }))
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

  it("sends several windows in one call, but those of a job one by one, and reports the progress of each", async () => {
    await fc.assert(
      fc.asyncProperty(length, sizes, fc.boolean(), async (count, cut, background) => {
        const { asked, model } = multiWindowEngine()
        const ends: Array<number> = []
        const onTranscribed = (samples: number) => void ends.push(samples)
        const run = { samples: audio(count), sizes: cut, background, onTranscribed }
        const transcript = await Effect.runPromise(transcribe(model, run))
        let at = 0
        for (const { end, start, text, windowStart } of transcript.segments) {
          const [first, consumed] = text.trim().split("+").map(Number) as [number, number]
          expect([first, windowStart]).toEqual([at, at / rateHz])
          expect(start).toBeCloseTo(at / rateHz, 9)
          at += consumed
          expect(end).toBeCloseTo(at / rateHz, 9)
        }
        expect(at).toBe(count)
        // The end of every window is reported once, in order.
        const expectedEnds = transcript.segments.map(({ end }) => Math.round(end * rateHz))
        expect(ends).toEqual(expectedEnds)
        const longest = background ? rateHz + 1 : 4 * rateHz
        for (const { samples, together } of asked) {
          expect(samples.length).toBeLessThanOrEqual(longest)
          expect(together ?? false).toBe(!background)
        }
      }),
      { numRuns: 100 },
    )
  })

  it("continues after an interruption with the same transcript as without it", async () => {
    await fc.assert(
      fc.asyncProperty(
        length,
        sizes,
        sizes,
        consumes,
        fc.nat(),
        async (count, cut, otherCut, amounts, where) => {
          const samples = audio(count)
          const stops: Array<TranscriptProgress> = []
          const whole = await Effect.runPromise(
            transcribe(countingEngine({ consumes: amounts }).model, {
              samples,
              sizes: cut,
              onProgress: (stop) => void stops.push(stop),
            }),
          )
          fc.pre(stops.length > 1)
          const nth = where % (stops.length - 1)
          const from = stops[nth]!
          // The consumption of the engine continues its cycle as well.
          const rest = [...amounts, ...amounts].slice(
            (nth + 1) % amounts.length,
            ((nth + 1) % amounts.length) + amounts.length,
          )
          const { model } = countingEngine({ consumes: rest })
          const continued = await Effect.runPromise(transcribe(model, { samples, sizes: otherCut, from }))
          expect(continued).toEqual(whole)
        },
      ),
      { numRuns: 100 },
    )
  })

  it("skips a window of which the engine reports no consumed samples", async () => {
    const { asked, model } = countingEngine({ consumes: [0] })
    const transcript = await Effect.runPromise(
      transcribe(model, { samples: audio(5 * rateHz), sizes: [rateHz] }),
    )
    expect(asked).toHaveLength(3)
    expect(transcript.duration).toBe(5)
  })
})

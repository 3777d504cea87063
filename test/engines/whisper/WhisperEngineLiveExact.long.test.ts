// Live transcription with the built-in recogniser against the file transcriber on the same samples: random mixes of
// the evaluation clips, transcribed in windows of any length, end in exactly the same text.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { transcribeFile } from "#actors/jobs/FileTranscription.ts"
import { IncrementalTranscriber } from "#actors/live/IncrementalTranscriber.ts"
import { LiveAudio } from "#actors/live/LiveAudio.ts"
import { f32ToS16, s16ToBytes, s16ToF32 } from "#domain/audio/Audio.ts"
import type { Segment, TranscribeRequest, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { inMemory, memoryAudio } from "../../support/audio/MemoryAudio.ts"
import { stubModel } from "../../support/engines/StubModel.ts"
import { clips, collector, demoSpec, samplesOf } from "./support/demoModel.ts"

const speech = clips.map(samplesOf)

/** Parts of clips, louder or softer, with pauses and hiss between: seconds of speech cut at random places. */
const madeUp = fc
  .record({
    parts: fc.array(
      fc.record({
        clip: fc.nat(speech.length - 1),
        from: fc.double({ min: 0, max: 0.7, noNaN: true }),
        share: fc.double({ min: 0.1, max: 1, noNaN: true }),
        gain: fc.double({ min: 0.3, max: 1.2, noNaN: true }),
        pauseSamples: fc.nat(16_000),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    hiss: fc.double({ min: 0, max: 0.01, noNaN: true }),
  })
  .map(({ hiss, parts }) => {
    const all: Array<number> = []
    let state = 12_345
    const noise = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return hiss * (state / 2 ** 31 - 1)
    }
    for (const { clip, from, gain, pauseSamples, share } of parts) {
      const samples = speech[clip]!
      const start = Math.floor(from * samples.length)
      const end = Math.min(samples.length, start + Math.floor(share * samples.length))
      for (let i = start; i < end; i++) all.push(samples[i]! * gain + noise())
      for (let i = 0; i < pauseSamples; i++) all.push(noise())
    }
    return f32ToS16(Float32Array.from(all))
  })

const engineCall =
  (engine: TranscriptionEngine) => (request: TranscribeRequest, onSegment: (segment: Segment) => void) => {
    const out = collector()
    return Effect.map(Effect.orDie(engine.transcribe(request, out)), (end) => {
      for (const segment of out.segments) onSegment(segment)
      return end
    })
  }

const fileText = (engine: TranscriptionEngine, samples: Int16Array) => {
  const model = stubModel("transcription", (request, listener) =>
    engineCall(engine)(inMemory(request), (segment) => listener.take(segment)),
  )
  return transcribeFile<never>({
    model,
    options: { language: undefined, prompt: "", temperature: 0, punctuation: undefined, words: false },
    background: false,
    audio: memoryAudio(s16ToF32(samples)),
    beforeWindow: () => Effect.void,
    onStarted: () => {},
    onSegment: () => {},
    onProgress: () => {},
  }).pipe(Effect.map(({ text }) => text))
}

/** Transcribed window by window, then the final result. */
const liveText = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  samples: Int16Array,
  windowSamples: number,
) {
  const audio = new LiveAudio(samples.length)
  const options = { language: undefined, prompt: "", fromScratch: false }
  const hearing = new IncrementalTranscriber(audio, engine.facts, options, engineCall(engine))
  const bytes = s16ToBytes(samples)
  for (let until = windowSamples; until < samples.length; until += windowSamples) {
    audio.append(bytes.subarray(audio.total * 2, until * 2))
    yield* hearing.close(until)
    yield* hearing.open(until, false)
  }
  audio.append(bytes.subarray(audio.total * 2))
  return (yield* hearing.open(samples.length, true)).text
})

/** As many as fit into a test's time; the bench runs hundreds more. */
const clipCount = 40

/** The one with many clips takes minutes. */
const inPieces = ["in pieces, as deployed", { variableLength: true, pieceSeconds: 8 }, clipCount] as const

describe.each([
  inPieces,
  ["in whole windows, as published weights", { variableLength: true }, Math.ceil(clipCount / 4)] as const,
])("live hearing %s", (_, options, numRuns) => {
  it.effect("ends in the file's text", () =>
    Effect.gen(function* () {
      const engine = (yield* whisperHfOnnx.acquire(demoSpec(options))) as TranscriptionEngine
      let heard = 0
      let words = 0
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(madeUp, fc.constantFrom(0.5, 1, 2, 5), async (samples, windowSeconds) => {
            const live = liveText(engine, samples, windowSeconds * 16_000)
            const [said, file] = await Effect.runPromise(Effect.all([live, fileText(engine, samples)]))
            heard++
            words += file.split(" ").length
            expect(said).toBe(file)
          }),
          { numRuns, seed: 20_261_121, endOnFailure: true },
        ),
      )
      expect(heard).toBe(numRuns)
      expect(words).toBeGreaterThan(numRuns)
    }),
  )
})

// A live session without a node: calls the fake engine's transcriber directly, with generated audio. Also the answer that the
// real file transcriber gives for a file of the same samples.
import { Effect } from "effect"
import * as fc from "fast-check"
import { transcribeFile } from "#actors/jobs/FileTranscription.ts"
import {
  IncrementalTranscriber,
  type LiveTranscriptionOptions,
  type Transcribe,
} from "#actors/live/IncrementalTranscriber.ts"
import { LiveAudio } from "#actors/live/LiveAudio.ts"
import type { Captioner } from "#actors/live/LiveCaptions.ts"
import { LiveSession } from "#actors/live/LiveSession.ts"
import { s16ToBytes, s16ToF32 } from "#domain/audio/Audio.ts"
import type { TranscriptSegment } from "#domain/audio/Transcript.ts"
import { closedSeconds, fakeTranscript } from "#engines/fake/FakeWords.ts"
import type { TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { inMemory, memoryAudio } from "../audio/MemoryAudio.ts"
import { stubModel } from "./StubModel.ts"

export const rateHz = 16_000

/** With pieces of two seconds, a few seconds of audio already have several pieces. */
export const factsOf = (pieceSeconds = 2): TranscriptionEngine["facts"] => ({
  slots: 4,
  windowSeconds: 30,
  closedSeconds: closedSeconds(pieceSeconds),
  languages: ["en"],
  summary: "",
})

export const plain: LiveTranscriptionOptions = { language: undefined, prompt: "", fromScratch: false }

/** The engine's `transcribe`, without delay. */
export const transcriber =
  <E = never>(pieceSeconds = 2, words?: ReadonlyArray<string>): Transcribe<E> =>
  (request, onSegment) =>
    Effect.sync(() => {
      const { end, segments } = fakeTranscript(request, pieceSeconds, words)
      for (const segment of segments) onSegment(segment)
      return end
    })

/** Captions by the engine's `transcribe`, without delay. */
export const captioner = <E = never>(seconds = 3, isApart = false): Captioner<E> => ({
  seconds,
  isApart,
  transcribe: (request, onSegment) => Effect.suspend(() => transcriber<E>()(request(), onSegment, "caption")),
})

interface Session<E> {
  readonly audio: LiveAudio
  readonly session: LiveSession<E>
  /** Number of windows that were reported as done. */
  readonly done: () => number
}

export const liveSession = <E = never>(
  transcribe: Transcribe<E>,
  {
    captions,
    isBusy = () => false,
    limitSamples = 120 * rateHz,
    options = plain,
    pieceSeconds = 2,
    windowSeconds = 1,
  }: {
    readonly captions?: Captioner<E>
    readonly isBusy?: (error: E) => boolean
    readonly limitSamples?: number
    readonly options?: LiveTranscriptionOptions
    readonly pieceSeconds?: number
    readonly windowSeconds?: number
  } = {},
): Session<E> => {
  const audio = new LiveAudio(limitSamples)
  let done = 0
  const hearing = new IncrementalTranscriber(audio, factsOf(pieceSeconds), options, transcribe, captions)
  const report = { audioReceived: () => {}, windowDone: () => void done++ }
  const session = new LiveSession(
    audio,
    hearing,
    { samples: windowSeconds * rateHz, ahead: 0 },
    report,
    isBusy,
    0,
  )
  return { audio, session, done: () => done }
}

/** The file transcriber's text of these samples; `onSegment` gets the segments that a streamed reply would have. */
export const fileAnswer = (
  samples: Int16Array,
  options: LiveTranscriptionOptions = plain,
  pieceSeconds = 2,
  {
    onSegment = () => {},
    words,
  }: {
    readonly onSegment?: (segment: TranscriptSegment) => void
    readonly words?: ReadonlyArray<string>
  } = {},
) => {
  const model = stubModel("transcription", (request, listener) =>
    Effect.sync(() => {
      const { end, segments } = fakeTranscript(inMemory(request), pieceSeconds, words)
      listener.started?.({ language: end.language }, { pause: () => {}, resume: () => {} })
      for (const segment of segments) listener.take(segment)
      return end
    }),
  )
  return transcribeFile<never>({
    model,
    options: { ...options, temperature: 0, punctuation: options.punctuation, words: false },
    background: false,
    audio: memoryAudio(s16ToF32(samples)),
    beforeWindow: () => Effect.void,
    onStarted: () => {},
    onSegment,
    onProgress: () => {},
  }).pipe(Effect.runSync)
}

/** Noise with pauses. */
export const samplesOf = (seconds: number, seed: number): Int16Array => {
  const samples = new Int16Array(Math.round(seconds * rateHz))
  let state = (seed * 7_919 + 1) >>> 0
  let loud = 0
  for (let i = 0; i < samples.length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    // The next stretch of up to 0.8 s, two thirds of them loud.
    if (i % 3_200 === 0) loud = (state >>> 20) % 3
    samples[i] = loud === 0 ? (state >>> 28) - 8 : (state >>> 19) - 4_096
  }
  return samples
}

export const audio = (maxSeconds: number) =>
  fc
    .tuple(fc.double({ min: 0, max: maxSeconds, noNaN: true }), fc.integer({ min: 1, max: 1_000_000 }))
    .map(([seconds, seed]) => samplesOf(seconds, seed))

export const bytesOf = (samples: Int16Array): Uint8Array => s16ToBytes(samples)

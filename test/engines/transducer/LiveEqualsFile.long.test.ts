// A live session on transducers that hear tones: its final text is the file's for any packets, pauses and times of captions, captions
// only grow, and words that were marked stable never change. Also with few streams kept, so that states are lost between requests.
import { rmSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { transcribeFile } from "#actors/jobs/FileTranscription.ts"
import { IncrementalTranscriber, type Transcribe } from "#actors/live/IncrementalTranscriber.ts"
import { LiveAudio } from "#actors/live/LiveAudio.ts"
import { s16ToBytes, s16ToF32 } from "#domain/audio/Audio.ts"
import type { EngineError, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import { transducerOnnx } from "#engines/transducer/TransducerEngine.ts"
import { inMemory, memoryAudio } from "../../support/audio/MemoryAudio.ts"
import { countedCalls } from "../../support/engines/NativeCalls.ts"
import { stubModel } from "../../support/engines/StubModel.ts"
import { endOf, randomTones, type ToneLayout, toneAudio, toneEars } from "../../support/engines/ToneEars.ts"
import { collector } from "../whisper/support/demoModel.ts"

const rateHz = 16_000

const transcribeOn =
  (engine: TranscriptionEngine): Transcribe<EngineError> =>
  (request, onSegment) =>
    Effect.gen(function* () {
      const out = collector()
      const end = yield* engine.transcribe(request, out)
      out.segments.forEach(onSegment)
      return end
    })

/** Phrases that these models nearly say: a word that is spelled with two tokens, and what is not said behind words that are. */
const keywords = ["amber birch", "Cedar dover", "finch", "grove hazel amber", "ember x", "hazelnut"]

const fileText = (engine: TranscriptionEngine, samples: Int16Array) => {
  const model = stubModel(
    "transcription",
    (request, listener) =>
      Effect.gen(function* () {
        const out = collector()
        const end = yield* engine.transcribe(inMemory(request), out)
        listener.started?.({ language: end.language }, { pause: () => {}, resume: () => {} })
        for (const segment of out.segments) listener.take(segment)
        return end
      }) as never,
    { facts: engine.facts },
  )
  return transcribeFile<never>({
    model,
    options: {
      language: undefined,
      prompt: "",
      temperature: 0,
      punctuation: undefined,
      words: false,
      keywords,
    },
    background: false,
    audio: memoryAudio(s16ToF32(samples)),
    beforeWindow: () => Effect.void,
    onStarted: () => {},
    onSegment: () => {},
  })
}

interface Seen {
  captions: number
  stable: number
}

/** Packets of random sizes; captions, previews and closings whenever. */
const session = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  samples: Int16Array,
  seed: number,
  seen: Seen,
) {
  const random = seededRandom(seed)
  const audio = new LiveAudio(samples.length + 1)
  const transcriber = new IncrementalTranscriber(
    audio,
    engine.facts,
    { language: undefined, prompt: "", keywords, fromScratch: false },
    transcribeOn(engine),
  )
  const steps = random() < 0.3 ? 20_000 : 60_000
  let at = 0
  let shown = ""
  let stable = ""
  while (at < samples.length) {
    const size = 1 + Math.floor(random() * random() * steps)
    audio.append(s16ToBytes(samples.subarray(at, at + size)))
    at = audio.total
    const what = random()
    if (what < 0.15) yield* transcriber.open(audio.total, true)
    if (what > 0.9 && transcriber.hasToClose(audio.total)) yield* transcriber.close(audio.total)
    if (what < 0.1 || what > 0.5) {
      const caption = yield* transcriber.caption(() => audio.total)
      if (engine.facts.grows !== undefined) {
        expect(caption.text.startsWith(shown)).toBe(true)
        expect(caption.text.slice(0, stable.length)).toBe(stable)
        if (caption.stableChars > 0) seen.stable++
        shown = caption.text
        stable = caption.text.slice(0, caption.stableChars)
      }
      seen.captions++
    }
  }
  const final = yield* transcriber.open(audio.total, true)
  if (engine.facts.grows !== undefined) expect(final.text.startsWith(shown)).toBe(true)
  return final.text
})

const cases = (layout: ToneLayout, options: Record<string, unknown>, chunkMs?: number) =>
  ({ layout, options, ...(chunkMs === undefined ? {} : { chunkMs }) }) as const

const kinds = [
  cases("sherpa", { pieceSeconds: 8 }),
  cases("parakeet-rs", { pieceSeconds: 8, keptStreams: 1 }, 80),
  cases("genai", { pieceSeconds: 12 }),
  cases("tdt", { pieceSeconds: 12 }),
  cases("zipformer", { pieceSeconds: 8 }),
]

describe("live and file are one computation", () => {
  for (const kind of kinds) {
    it.effect(
      `${kind.layout}: the same text for any packets, and captions that only grow`,
      () =>
        Effect.gen(function* () {
          const ears = toneEars(kind)
          yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(ears.folder, { recursive: true })))
          const engine = (yield* transducerOnnx.acquire(ears.spec)) as TranscriptionEngine
          const seen: Seen = { captions: 0, stable: 0 }
          const count = 100
          let words = 0
          for (let seed = 1; seed <= count; seed++) {
            const tones = randomTones(4 + (seed % 4) * 6, seed, seed % 3 === 0 ? 0.15 : 0.3)
            const samples = toneAudio(tones, endOf(tones) + (seed % 4) * 0.7, seed)
            const file = (yield* fileText(engine, samples)).text
            const live = yield* session(engine, samples, seed, seen)
            expect([kind.layout, seed, live]).toEqual([kind.layout, seed, file])
            words += file.split(" ").length
          }
          expect(words).toBeGreaterThan(5 * count)
          expect(seen.captions).toBeGreaterThan(2 * count)
          if (kind.layout !== "tdt") expect(seen.stable).toBeGreaterThan(count)
          console.log(
            `${kind.layout}: ${count} of ${count} sessions have the file's text, ${seen.captions} captions, ${words} words`,
          )
        }),
      // A hundred sessions in `test:long`.
      1_200_000,
    )
  }

  it.effect("a caption costs only the chunks that are new", () =>
    Effect.gen(function* () {
      const ears = toneEars({ layout: "sherpa" })
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(ears.folder, { recursive: true })))
      const engine = (yield* transducerOnnx.acquire(ears.spec)) as TranscriptionEngine
      const tones = randomTones(12, 3)
      const samples = s16ToF32(toneAudio(tones, 9, 3))
      const calls = yield* countedCalls("audio_signal")
      const hear = (stream: number | undefined) =>
        Effect.gen(function* () {
          const before = calls()
          for (let until = rateHz; until <= samples.length; until += rateHz / 2) {
            const request = {
              samples: samples.subarray(0, until),
              language: undefined,
              prompt: "",
              previousTokens: [],
              temperature: 0,
              punctuation: undefined,
              words: false,
              last: false,
              caption: true,
              ...(stream === undefined ? {} : { stream }),
            }
            yield* engine.transcribe(request, collector())
          }
          return calls() - before
        })
      const anew = yield* hear(undefined)
      const kept = yield* hear(7)
      // Eight times the chunks.
      expect(kept).toBeGreaterThan(10)
      expect(kept).toBeLessThan(anew / 6)
    }),
  )
})

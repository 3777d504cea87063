// Intelligibility: the demonstration recogniser transcribes the demonstration voices, and the words are compared. The
// recogniser is a small model of its own (about 10 % wrong on other voices), so the bounds are wide.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { kokoroOnnx } from "#engines/kokoro/KokoroOnnx.ts"
import type { TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { encoderAudio } from "#engines/shared/speech/ReferenceClip.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { type Heard, wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { collector, demoSpec, request, textOf } from "../whisper/support/demoModel.ts"
import { demoFiles, openSpeech, say, speechRequest } from "./speech.ts"

const sentences = [
  "Please open the window and close the door.",
  "The weather in London is cold and rainy tonight.",
  "My brother bought a small red car and drove to the mountains.",
  "My name is Anna. How can I help you today?",
  "Set a timer for twenty five minutes.",
  "Good morning, can you tell me the time, please?",
  "The train to Oxford leaves at nine in the morning.",
]

describe("round trip", () => {
  it.effect("the recogniser understands most of what the voices say, pieces joined or not", () =>
    Effect.gen(function* () {
      const speech = yield* openSpeech(kokoroOnnx, demoFiles)
      const ears = (yield* whisperHfOnnx.acquire(
        demoSpec({ variableLength: true, pieceSeconds: 8 }),
      )) as TranscriptionEngine
      const heardBy = Effect.fnUntraced(function* (preset: string) {
        const heard: Array<Heard> = []
        for (const sentence of sentences) {
          const { samples } = yield* say(speech, speechRequest(sentence, { voice: { preset } }))
          const out = collector()
          yield* ears.transcribe(request(encoderAudio(samples, 24_000, 16_000)), out)
          heard.push({ reference: sentence, heard: textOf(out.segments) })
        }
        return heard
      })
      const byVoice = yield* Effect.forEach(speech.facts.voices, (preset) =>
        Effect.map(heardBy(preset), (heard) => [preset, heard] as const),
      )
      const rates = Object.fromEntries(byVoice.map(([preset, heard]) => [preset, wordErrorRate(heard)]))
      for (const [preset, rate] of Object.entries(rates)) {
        // Measured: 0.03 (af_bella) to 0.15 (af_sarah).
        expect([preset, rate < 0.25]).toEqual([preset, true])
      }
      // Measured: 0.07.
      expect(wordErrorRate(byVoice.flatMap(([, heard]) => heard))).toBeLessThan(0.13)
    }),
  )
})

// Measures of the built-in voices: word errors of the transcription model on their speech, artefacts, differences in loudness,
// duration at each `speed`, and computing time.
import { Effect } from "effect"
import { speechRateHz } from "#domain/audio/Audio.ts"
import type { SpeechEngine } from "#engines/protocol/Engine.ts"
import { wordErrorPercent } from "#harness/figures/WordErrors.ts"
import { atMost, figure, figureOf, ofEach, type Part } from "#harness/report/Figure.ts"
import { loadTranscriber, loadVoices, type Speech, speak, toTranscriberInput, transcribe } from "./Engines.ts"
import { evaluationSet } from "./EvaluationSet.ts"
import { cleannessOf } from "./VoiceProfile.ts"

const speeds = [0.25, 0.5, 2, 4]

interface Spoken extends Speech {
  readonly voice: string
  readonly text: string
}

/** Every voice speaks every sentence of the round trip. */
const speakAll = Effect.fnUntraced(function* (voices: SpeechEngine) {
  const out: Array<Spoken> = []
  for (const voice of voices.facts.voices) {
    for (const text of evaluationSet.roundTrip) {
      out.push({ voice, text, ...(yield* speak(voices, text, { preset: voice })) })
    }
  }
  return out
})

const roundTrip = Effect.fnUntraced(function* (spoken: ReadonlyArray<Spoken>, ids: ReadonlyArray<string>) {
  const transcriber = yield* loadTranscriber
  const results = yield* Effect.forEach(spoken, ({ samples, text, voice }) =>
    Effect.map(transcribe(transcriber, toTranscriberInput(samples)), (transcript) => ({
      voice,
      spoken: text,
      transcribed: transcript.text,
    })),
  )
  const goal = atMost(20)
  return {
    title: "Voices: word errors of their transcripts (round trip)",
    method: `${evaluationSet.roundTrip.length} free sentences, spoken by every voice and transcribed by the built-in transcription model, which makes errors of its own.`,
    figures: [
      figure("all voices", "%", [wordErrorPercent(results)], goal),
      ...ids.map((id) =>
        figure(id, "%", [wordErrorPercent(results.filter(({ voice }) => voice === id))], goal),
      ),
    ],
  } satisfies Part
})

const cleanness = (spoken: ReadonlyArray<Spoken>, ids: ReadonlyArray<string>): Part => {
  const all = spoken.map(({ samples, voice }) => ({ voice, ...cleannessOf(samples) }))
  const loudness = ids.map((id) => {
    const own = all.filter(({ voice }) => voice === id)
    return own.reduce((sum, { loudnessDbfs }) => sum + loudnessDbfs, 0) / own.length
  })
  const most = (values: ReadonlyArray<number>) => [Math.max(...values)]
  return {
    title: "Voices: cleanness",
    method: "The same sentences; loudness is the mean power without pauses.",
    figures: [
      figure("highest peak", "dBFS", most(all.map(({ peakDbfs }) => peakDbfs)), atMost(-1)),
      figure(
        "largest mean of a clip (DC)",
        "% of full scale",
        most(all.map(({ dc }) => 100 * dc)),
        atMost(0.1),
      ),
      figure(
        "largest first or last sample (click)",
        "% of full scale",
        most(all.map(({ edge }) => 100 * edge)),
        atMost(0.5),
      ),
      figure(
        "loudest voice above the quietest",
        "dB",
        [Math.max(...loudness) - Math.min(...loudness)],
        atMost(2),
      ),
      ...ids.map((id, at) => figure(`loudness of ${id}`, "dBFS", [loudness[at] ?? Number.NaN])),
    ],
  }
}

const durations = Effect.fnUntraced(function* (voices: SpeechEngine, ids: ReadonlyArray<string>) {
  const texts = evaluationSet.roundTrip.slice(0, 2)
  const errors = new Map(speeds.map((speed) => [speed, [] as Array<number>]))
  for (const voice of ids) {
    for (const text of texts) {
      const { samples: normal } = yield* speak(voices, text, { preset: voice })
      for (const speed of speeds) {
        const { samples } = yield* speak(voices, text, { preset: voice }, { speed })
        errors.get(speed)?.push(100 * Math.abs((samples.length * speed) / normal.length - 1))
      }
    }
  }
  return {
    title: "Voices: duration against speed",
    method: `${texts.length} sentences of every voice; the difference of duration times speed from the duration at speed 1.`,
    figures: [...errors].flatMap(([speed, off]) => [
      figure(`speed ${speed}`, "% off", off),
      figure(`speed ${speed}, the worst`, "% off", [Math.max(...off)], atMost(5)),
    ]),
  } satisfies Part
})

const cost = (spoken: ReadonlyArray<Spoken>): Part => ({
  title: "Voices: speed",
  method: `${spoken.length} sentences, text to samples, one thread.`,
  figures: [
    figureOf(
      ofEach(
        spoken,
        "computing time for a second of speech",
        "s",
        ({ computeSeconds, samples }) => (computeSeconds * speechRateHz) / samples.length,
      ),
      atMost(0.2),
    ),
  ],
})

export const voiceSections = Effect.gen(function* () {
  const voices = yield* loadVoices
  const ids = voices.facts.voices
  const spoken = yield* speakAll(voices)
  return [
    yield* roundTrip(spoken, ids),
    cleanness(spoken, ids),
    yield* durations(voices, ids),
    cost(spoken),
  ] satisfies ReadonlyArray<Part>
})

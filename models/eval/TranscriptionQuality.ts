// Measures of the built-in transcription model (the ears): word errors by voice and condition, text where there is no speech, errors
// of segment times, and speed. Uses the product's own engine and the audio of models/eval.
import { Effect } from "effect"
import { listenRateHz, s16ToF32 } from "#domain/audio/Audio.ts"
import type { TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { type TranscribedText, wordErrorPercent } from "#harness/figures/WordErrors.ts"
import { atLeast, atMost, figure, figureOf, ofEach, type Part } from "#harness/report/Figure.ts"
import { clipsWithoutSpeech, withNoise, withReverberation } from "./Conditions.ts"
import {
  loadTranscriber,
  loadVoices,
  speak,
  type Transcript,
  toTranscriberInput,
  transcribe,
} from "./Engines.ts"
import { evaluationSet, type Recording, recordingSamples } from "./EvaluationSet.ts"

/** Seconds of silence on either side of a sentence that is cut out of its recording. */
const marginSeconds = 0.2

interface Sentence extends TranscribedText {
  readonly voice: string
  readonly group: Recording["group"]
  readonly kind: "pattern" | "free"
}

/** One recording of the evaluation set and its samples, f32 mono 16 kHz. */
interface Material {
  readonly recording: Recording
  readonly samples: Float32Array
}

const materialOf = (recording: Recording) =>
  Effect.map(recordingSamples(recording), (samples): Material => ({ recording, samples: s16ToF32(samples) }))

type Condition = readonly [name: string, apply: (samples: Float32Array, seed: number) => Float32Array]

const clean: Condition = ["clean", (samples) => samples]

/** The goals apply to `clean`; these show how fast the error rate rises. */
export const degradations: ReadonlyArray<Condition> = [
  ["noise, 20 dB", (samples, seed) => withNoise(samples, 20, seed)],
  ["noise, 10 dB", (samples, seed) => withNoise(samples, 10, seed)],
  ["reverberation of 0.3 s", (samples, seed) => withReverberation(samples, 0.3, listenRateHz, seed)],
]

/** A sentence out of its recording, with a little of the silence around it. `start`, `end`: seconds. */
export const sentenceOf = (samples: Float32Array, start: number, end: number): Float32Array =>
  samples.slice(
    Math.max(0, Math.round((start - marginSeconds) * listenRateHz)),
    Math.round((end + marginSeconds) * listenRateHz),
  )

/** Transcribes every sentence of the material, one by one, under one condition. */
const transcribeSentences = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  material: ReadonlyArray<Material>,
  [, apply]: Condition,
) {
  const out: Array<Sentence> = []
  for (const { recording, samples } of material) {
    for (const { end, kind, start, text } of recording.segments) {
      const transcript = yield* transcribe(engine, apply(sentenceOf(samples, start, end), out.length + 1))
      out.push({
        spoken: text,
        transcribed: transcript.text,
        kind,
        voice: recording.voice,
        group: recording.group,
      })
    }
  }
  return out
})

const wordErrors = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  material: ReadonlyArray<Material>,
) {
  const cleanResults = yield* transcribeSentences(engine, material, clean)
  const rate = (what: string, chosen: ReadonlyArray<Sentence>, goal?: number) =>
    figure(what, "%", [wordErrorPercent(chosen)], goal === undefined ? undefined : atMost(goal))
  const trained = cleanResults.filter(({ group }) => group === "trained")
  const unseen = cleanResults.filter(({ group }) => group === "unseen")
  const groups = [
    rate("trained voices", trained, 7),
    rate(
      "trained voices, framed sentences",
      trained.filter(({ kind }) => kind === "pattern"),
    ),
    rate(
      "trained voices, free sentences",
      trained.filter(({ kind }) => kind === "free"),
    ),
    rate("voices never trained", unseen, 14),
  ]
  const degraded = yield* Effect.forEach(degradations, (condition) =>
    Effect.map(transcribeSentences(engine, material, condition), (sentences) =>
      rate(`all voices, ${condition[0]}`, sentences),
    ),
  )
  const byVoice = material.map(({ recording: { group, voice } }) =>
    rate(
      group === "unseen" ? `${voice} (never trained)` : voice,
      cleanResults.filter((sentence) => sentence.voice === voice),
    ),
  )
  return [
    {
      title: "Transcription: word errors",
      method: `${cleanResults.length} sentences of ${material.length} espeak-ng voices, one by one, clean unless the row names a condition; compared in lower case without punctuation.`,
      figures: [...groups, ...degraded],
    },
    {
      title: "Transcription: word errors by voice, clean",
      method: "Four sentences a voice, six of a voice that was never trained: about 30 and 45 words.",
      figures: byVoice,
    },
  ] satisfies ReadonlyArray<Part>
})

/** Every built-in voice says so many of the sentences with words that the training never had. */
const unheardOfVoice = 4

const unheardWords = Effect.fnUntraced(function* (engine: TranscriptionEngine) {
  const material = yield* Effect.forEach(evaluationSet.unheard, materialOf)
  const byEspeak = yield* transcribeSentences(engine, material, clean)
  const voices = yield* loadVoices
  const texts = byEspeak.map(({ spoken }) => spoken)
  const said = voices.facts.voices.flatMap((voice, at) =>
    texts
      .filter((_, index) => index % voices.facts.voices.length === at)
      .slice(0, unheardOfVoice)
      .map((text) => ({ voice, text })),
  )
  const byVoices = yield* Effect.forEach(said, ({ text, voice }) =>
    Effect.gen(function* () {
      const { samples } = yield* speak(voices, text, { preset: voice })
      const { text: transcribed } = yield* transcribe(engine, toTranscriberInput(samples))
      return { spoken: text, transcribed }
    }),
  )
  return {
    title: "Transcription: word errors of sentences with words that the training never had",
    method: `Two or more of the words of each sentence: ${byEspeak.length} sentences of ${material.length} trained espeak-ng voices, ${byVoices.length} of the built-in voices; all words count.`,
    figures: [
      figure("trained espeak-ng voices", "%", [wordErrorPercent(byEspeak)], atMost(12)),
      figure("built-in voices", "%", [wordErrorPercent(byVoices)], atMost(16)),
    ],
  } satisfies Part
})

const withoutSpeech = Effect.fnUntraced(function* (engine: TranscriptionEngine) {
  const clips = clipsWithoutSpeech(listenRateHz)
  const results = yield* Effect.forEach(clips, ({ kind, samples }) =>
    Effect.map(transcribe(engine, samples), ({ text }) => ({ kind, empty: text === "" })),
  )
  const kinds = [...new Set(clips.map(({ kind }) => kind))]
  const share = (what: string, chosen: typeof results) => {
    const empty = chosen.filter((clip) => clip.empty).length
    return figure(what, "%", [(100 * empty) / chosen.length], atLeast(100))
  }
  return {
    title: "Transcription: empty text where there is no speech",
    method: `${clips.length} generated clips of 1, 3, 8 and 20 s.`,
    figures: kinds.map((kind) =>
      share(
        kind,
        results.filter((clip) => clip.kind === kind),
      ),
    ),
  } satisfies Part
})

/** For every spoken sentence, the distance to the nearest start and the nearest end of a transcribed segment. */
const timeErrors = (recording: Recording, { segments }: Transcript) => {
  const nearest = (times: ReadonlyArray<number>, time: number) =>
    Math.min(...times.map((other) => Math.abs(other - time)))
  return recording.segments.map(({ end, start }) => ({
    start: nearest(
      segments.map((segment) => segment.start),
      start,
    ),
    end: nearest(
      segments.map((segment) => segment.end),
      end,
    ),
  }))
}

const times = Effect.fnUntraced(function* (engine: TranscriptionEngine, material: ReadonlyArray<Material>) {
  const results = yield* Effect.forEach(material, ({ recording, samples }) =>
    Effect.map(transcribe(engine, samples), (transcript) => ({ recording, transcript })),
  )
  const errors = results.flatMap(({ recording, transcript }) => timeErrors(recording, transcript))
  const within = (side: "start" | "end") =>
    (100 * errors.filter((error) => error[side] <= 0.3).length) / errors.length
  const goal = atMost(0.3)
  const least = atLeast(90)
  const segments = results.filter(
    ({ recording, transcript }) => transcript.segments.length === recording.segments.length,
  ).length
  return {
    title: "Transcription: times of segments",
    method: `${material.length} recordings of four or six sentences with pauses of half a second; for every sentence, the distance to the nearest transcribed start and end.`,
    figures: [
      figureOf(
        ofEach(errors, "error of starts", "s", ({ start }) => start),
        goal,
      ),
      figureOf(
        ofEach(errors, "error of ends", "s", ({ end }) => end),
        goal,
      ),
      figure("starts within 0.3 s", "%", [within("start")], least),
      figure("ends within 0.3 s", "%", [within("end")], least),
      figure("recordings cut into the right number of segments", "%", [(100 * segments) / results.length]),
    ],
  } satisfies Part
})

/** Computing time of windows of the English recordings. */
export const speed = Effect.fnUntraced(function* (title: string, engine: TranscriptionEngine) {
  const seconds = 10
  const material = yield* Effect.forEach(evaluationSet.speech, materialOf)
  const long = material.filter(({ samples }) => samples.length >= seconds * listenRateHz).slice(0, 9)
  const computeTimes = yield* Effect.forEach(long, ({ samples }) =>
    Effect.map(
      transcribe(engine, samples.subarray(0, seconds * listenRateHz)),
      ({ computeSeconds }) => computeSeconds,
    ),
  )
  return {
    title,
    method: `${long.length} windows of ${seconds} s of English, one thread.`,
    figures: [figure("computing time of a window of 10 s", "s", computeTimes, atMost(1))],
  } satisfies Part
})

export const transcriptionSections = Effect.gen(function* () {
  const engine = yield* loadTranscriber
  const material = yield* Effect.forEach(evaluationSet.speech, materialOf)
  return [
    ...(yield* wordErrors(engine, material)),
    yield* unheardWords(engine),
    yield* withoutSpeech(engine),
    yield* times(engine, material),
    yield* speed("Transcription: speed", engine),
  ] satisfies ReadonlyArray<Part>
})

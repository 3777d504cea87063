// Measures of the built-in multilingual transcription model: word errors by language, what it makes of speech that it is told is in
// another language, and text where there is no speech, in every language. Uses the product's own engine and the audio of models/eval.
import { Effect } from "effect"
import { listenRateHz, s16ToF32 } from "#domain/audio/Audio.ts"
import type { TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { type TranscribedText, wordErrorPercent, wordsOf } from "#harness/figures/WordErrors.ts"
import { atLeast, atMost, figure, figureOf, type Part, readingsOf } from "#harness/report/Figure.ts"
import { clipsWithoutSpeech } from "./Conditions.ts"
import { loadCloner, loadMultilingual, speak, toTranscriberInput, transcribe } from "./Engines.ts"
import { evaluationSet, recordingSamples } from "./EvaluationSet.ts"
import { degradations, sentenceOf, speed } from "./TranscriptionQuality.ts"

interface Sentence {
  readonly language: string
  /** Whether the training used its voice. */
  readonly trained: boolean
  /** `free`: written by hand for the evaluation; `pattern`: made from a frame of the training text. */
  readonly kind: string
  readonly text: string
  /** f32 mono 16 kHz. */
  readonly samples: Float32Array
}

const sentences = Effect.gen(function* () {
  const recordings = Object.entries({ en: evaluationSet.speech, ...evaluationSet.languages }).flatMap(
    ([language, ofLanguage]) => ofLanguage.map((recording) => ({ language, recording })),
  )
  const spoken = yield* Effect.forEach(recordings, ({ language, recording }) =>
    Effect.map(recordingSamples(recording), (samples) => {
      const all = s16ToF32(samples)
      return recording.segments.map(
        ({ end, kind, start, text }): Sentence => ({
          language,
          trained: recording.group === "trained",
          kind,
          text,
          samples: sentenceOf(all, start, end),
        }),
      )
    }),
  )
  return spoken.flat()
})

const names = new Intl.DisplayNames("en", { type: "language" })
const nameOf = (language: string): string => names.of(language) ?? language

const hear = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  all: ReadonlyArray<Sentence>,
  languageOf: (sentence: Sentence) => string,
  degrade: (samples: Float32Array, seed: number) => Float32Array = (samples) => samples,
) {
  return yield* Effect.forEach(all, (sentence, at) =>
    Effect.map(
      transcribe(engine, degrade(sentence.samples, at + 1), { language: languageOf(sentence) }),
      ({ text }): Sentence & TranscribedText => ({ ...sentence, spoken: sentence.text, transcribed: text }),
    ),
  )
})

const wordErrors = Effect.fnUntraced(function* (engine: TranscriptionEngine, all: ReadonlyArray<Sentence>) {
  const languages = [...new Set(all.map(({ language }) => language))]
  const clean = yield* hear(engine, all, ({ language }) => language)
  const degraded = yield* Effect.forEach(degradations, ([condition, apply]) =>
    Effect.map(
      hear(engine, all, ({ language }) => language, apply),
      (heard) => figure(`all languages, ${condition}`, "%", [wordErrorPercent(heard)]),
    ),
  )
  return {
    title: "Languages: word errors",
    method: `${all.length} sentences of trained espeak-ng voices, one by one with their language, clean unless the row names a condition; compared in lower case without punctuation.`,
    figures: [
      ...languages.map((language) =>
        figure(
          nameOf(language),
          "%",
          [wordErrorPercent(clean.filter((sentence) => sentence.language === language))],
          atMost(15),
        ),
      ),
      figure("all languages", "%", [wordErrorPercent(clean)]),
      ...(["framed", "free"] as const).map((kind) =>
        figure(`all languages, ${kind} sentences`, "%", [
          wordErrorPercent(clean.filter((sentence) => (sentence.kind === "free") === (kind === "free"))),
        ]),
      ),
      ...degraded,
    ],
  } satisfies Part
})

/** Whether the text ends in a group of one to four words that stands there at least four times in a row. */
const loops = (text: string): boolean => {
  const words = wordsOf(text)
  return [1, 2, 3, 4].some((length) => {
    const group = words.slice(-length).join(" ")
    return (
      words.length >= 4 * length &&
      [2, 3, 4].every(
        (back) => words.slice(-back * length, words.length - (back - 1) * length).join(" ") === group,
      )
    )
  })
}

const unseenVoices = Effect.fnUntraced(function* (engine: TranscriptionEngine, all: ReadonlyArray<Sentence>) {
  const languages = [...new Set(all.map(({ language }) => language))]
  const heard = yield* hear(engine, all, ({ language }) => language)
  return {
    title: "Languages: word errors of voices that were never trained",
    method: `${all.length} sentences of espeak-ng voices that no training had, clean, one by one with their language; other than the English ones they are among those of the trained voices.`,
    figures: languages.map((language) =>
      figure(nameOf(language), "%", [
        wordErrorPercent(heard.filter((sentence) => sentence.language === language)),
      ]),
    ),
  } satisfies Part
})

/** Each sentence is told to be in the next language of the list. */
const wrongLanguage = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  all: ReadonlyArray<Sentence>,
) {
  const languages = [...new Set(all.map(({ language }) => language))]
  const next = ({ language }: Sentence) => languages[(languages.indexOf(language) + 1) % languages.length]!
  const heard = yield* hear(engine, all, next)
  const count = (hit: (sentence: Sentence & TranscribedText) => boolean) => [heard.filter(hit).length]
  const ratios = heard.map(({ text, transcribed }) => transcribed.length / text.length)
  return {
    title: "Languages: speech in another language than the request says",
    method: `The same ${all.length} sentences, each requested in another of the languages.`,
    figures: [
      figure(
        "empty texts",
        `of ${all.length}`,
        count(({ transcribed }) => transcribed === ""),
        atMost(0),
      ),
      figure(
        "texts that repeat their end four times",
        `of ${all.length}`,
        count(({ transcribed }) => loops(transcribed)),
        atMost(0),
      ),
      figureOf(readingsOf("characters, for each that was spoken", "", ratios)),
      figure("the most of one text", "", [Math.max(...ratios)], atMost(3)),
    ],
  } satisfies Part
})

/** Sentences of each language that the cloning model speaks for its round trip. */
const spokenSentences = 15

/** The cloning model speaks sentences of every language that both models know, with its default voice. */
const roundTrip = Effect.fnUntraced(function* (engine: TranscriptionEngine, all: ReadonlyArray<Sentence>) {
  const cloner = yield* loadCloner
  const languages = [...new Set(all.map(({ language }) => language))].filter((language) =>
    cloner.facts.languages?.includes(language),
  )
  const figures = yield* Effect.forEach(languages, (language) =>
    Effect.gen(function* () {
      const chosen = all.filter((sentence) => sentence.language === language).slice(0, spokenSentences)
      const heard = yield* Effect.forEach(chosen, ({ text }) =>
        Effect.gen(function* () {
          const { samples } = yield* speak(cloner, text, { preset: "default" }, { language })
          const { text: transcribed } = yield* transcribe(engine, toTranscriberInput(samples), { language })
          return { spoken: text, transcribed }
        }),
      )
      return figure(nameOf(language), "%", [wordErrorPercent(heard)], atMost(20))
    }),
  )
  return {
    title: "Languages: word errors of what the cloning model speaks (round trip)",
    method: `${spokenSentences} of the sentences of each language that both models know, spoken with the default voice and transcribed by the multilingual model, which makes errors of its own.`,
    figures,
  } satisfies Part
})

const withoutSpeech = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  languages: ReadonlyArray<string>,
) {
  const clips = clipsWithoutSpeech(listenRateHz)
  const figures = yield* Effect.forEach(languages, (language) =>
    Effect.map(
      Effect.forEach(clips, ({ samples }) => transcribe(engine, samples, { language })),
      (transcripts) => {
        const empty = transcripts.filter(({ text }) => text === "").length
        return figure(nameOf(language), "%", [(100 * empty) / clips.length], atLeast(100))
      },
    ),
  )
  return {
    title: "Languages: empty text where there is no speech",
    method: `${clips.length} generated clips (silence, noises, hum, tones, clicks) of 1, 3, 8 and 20 s, requested in each language.`,
    figures,
  } satisfies Part
})

/** Of the languages that the model knows. */
export const languageSections = Effect.gen(function* () {
  const engine = yield* loadMultilingual
  const known = (yield* sentences).filter(({ language }) => engine.facts.languages?.includes(language))
  const all = known.filter(({ trained }) => trained)
  const languages = [...new Set(all.map(({ language }) => language))]
  return [
    yield* wordErrors(engine, all),
    yield* unseenVoices(
      engine,
      known.filter(({ trained }) => !trained),
    ),
    ...(languages.length > 1 ? [yield* wrongLanguage(engine, all)] : []),
    yield* withoutSpeech(engine, languages),
    yield* roundTrip(engine, all),
    yield* speed("Languages: speed", engine),
  ] satisfies ReadonlyArray<Part>
})

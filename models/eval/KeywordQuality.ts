// Measures of `keywords`: names that no model knows, spoken by the built-in voices and transcribed by the built-in transcription model with and
// without the list of the names.
import { Effect } from "effect"
import type { SpeechEngine, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { type TranscribedText, wordErrorPercent, wordErrorsOf, wordsOf } from "#harness/figures/WordErrors.ts"
import { atMost, besideFloor, figure, type Part, readingsOf } from "#harness/report/Figure.ts"
import { loadTranscriber, loadVoices, speak, toTranscriberInput, transcribe } from "./Engines.ts"
import { evaluationSet } from "./EvaluationSet.ts"

/** Invented. The limits of the search were chosen with other names. */
const names = (
  "Zorvan Belindra Quaston Mirelda Tovarin Halbrecht Sendavi Pelorus Garnika Ulmaren Fendrake Losanti Brimway Caldoreth " +
  "Dravenor Elwick Farrowen Gorvald Hestian Ivarra Jemmering Kalvator Lundrey Marrowick Nestafel Orlindo Pravella Quillane " +
  "Rostevan Silvanor Tarrick Umbreth Velthorn Wexmoor Yarrowby Zeltania Ambertine Bosvenna Corwyth Delmara Estovan " +
  "Fallowmere Grendish Havorick Istrella Jorvane Kestavo Lavrenti Morvenna Norrish"
).split(" ")

const sentences: ReadonlyArray<(name: string) => string> = [
  (name) => `Please call ${name} tomorrow morning.`,
  (name) => `The meeting with ${name} is on Monday.`,
  (name) => `Can you send the book to ${name} today?`,
]

interface Clip {
  readonly name: string
  readonly text: string
  readonly samples: Float32Array
}

/** Each name is spoken in one sentence by two voices, in turn. */
const speakNames = Effect.fnUntraced(function* (voices: SpeechEngine) {
  const presets = voices.facts.voices
  const clips: Array<Clip> = []
  for (const [i, name] of names.entries()) {
    for (const turn of [0, 1]) {
      const text = sentences[(i + turn) % sentences.length]!(name)
      const preset = presets[(2 * i + turn) % presets.length]!
      const { samples } = yield* speak(voices, text, { preset })
      clips.push({ name, text, samples: toTranscriberInput(samples) })
    }
  }
  return clips
})

/** Invented phrases that nothing says, of three syllables each, so that a list is as long as it may be. */
const filler = (count: number): ReadonlyArray<string> => {
  const [first, middle, last] = [
    "Ba Ce Di Fo Gu Ha Ke Li Mo Nu",
    "ra ven lo tis mar",
    "don vel rick sa nia ton by mer land que",
  ].map((syllables) => syllables.split(" ")) as [Array<string>, Array<string>, Array<string>]
  return Array.from({ length: count }, (_, i) => {
    const [a, b, c] = [i % 10, Math.floor(i / 10) % 5, Math.floor(i / 50) % 10]
    const ending = i < 500 ? "" : "ar"
    return `${first[a]}${middle[b]}${last[c]}${ending}`
  })
}

interface Heard extends TranscribedText {
  readonly name: string
  /** Processor time. */
  readonly seconds: number
}

const hear = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  clips: ReadonlyArray<Clip>,
  keywords: ReadonlyArray<string>,
) {
  const heard: Array<Heard> = []
  for (const { name, samples, text } of clips) {
    const before = process.cpuUsage()
    const transcript = yield* transcribe(engine, samples, { keywords })
    const { system, user } = process.cpuUsage(before)
    heard.push({ name, spoken: text, transcribed: transcript.text, seconds: (system + user) / 1e6 })
  }
  return heard
})

const isWrong = ({ name, transcribed }: Heard): boolean => !wordsOf(transcribed).includes(name.toLowerCase())

/** Percent of the names that are wrong, and of the other words. */
const errorsOf = (heard: ReadonlyArray<Heard>) => {
  const wrongNames = heard.filter(isWrong).length
  const all = heard.map(wordErrorsOf)
  const wrong = all.reduce((sum, one) => sum + one.wrong, 0)
  const words = all.reduce((sum, one) => sum + one.words, 0)
  return {
    names: (100 * wrongNames) / heard.length,
    others: (100 * (wrong - wrongNames)) / (words - heard.length),
  }
}

/** Runs of each side of the comparison of times, in turn. */
const runs = 7

type Side = "without" | "with"

const sum = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b, 0)

const tenths = (value: number): number => Math.round(10 * value) / 10

export const keywordSections = Effect.gen(function* () {
  const engine = yield* loadTranscriber
  const voices = yield* loadVoices
  const clips = yield* speakNames(voices)
  const many = [...names, ...filler(1_000 - names.length)]
  const plain = errorsOf(yield* hear(engine, clips, []))
  const named = errorsOf(yield* hear(engine, clips, names))
  const amongMany = errorsOf(yield* hear(engine, clips, many))
  const ordinary = yield* Effect.forEach(evaluationSet.roundTrip, (text, i) =>
    Effect.map(
      speak(voices, text, { preset: voices.facts.voices[i % voices.facts.voices.length]! }),
      ({ samples }) => ({ text, samples: toTranscriberInput(samples), name: "" }),
    ),
  )
  const texts: Record<Side, ReadonlyArray<Heard>> = { without: [], with: [] }
  /** The shortest time of each sentence: what other work on the machine adds is left out. */
  const shortest = { without: ordinary.map(() => Infinity), with: ordinary.map(() => Infinity) }
  for (let run = 0; run < runs; run++) {
    for (const side of ["without", "with"] as const) {
      const heard = yield* hear(engine, ordinary, side === "with" ? many : [])
      texts[side] = heard
      heard.forEach(({ seconds }, i) => {
        shortest[side][i] = Math.min(shortest[side][i]!, seconds)
      })
    }
  }
  const ordinaryErrors = [texts.without, texts.with].map(wordErrorPercent)
  const floor = readingsOf("ordinary sentences without keywords", "s", [sum(shortest.without)])
  const subject = readingsOf("ordinary sentences with 1,000 keywords", "s", [sum(shortest.with)])
  return [
    {
      title: "Keywords: names and other words",
      method: `${names.length} invented names, each in a sentence spoken by two of the built-in voices; ${evaluationSet.roundTrip.length} sentences without names. The list of 1,000 has the ${names.length} names and others that nothing says.`,
      figures: [
        figure("wrong names without keywords", "%", [plain.names]),
        figure(`wrong names, ${names.length} keywords`, "%", [named.names], atMost(tenths(plain.names / 2))),
        figure("wrong names, 1,000 keywords", "%", [amongMany.names]),
        figure("word errors beside the names without keywords", "%", [plain.others]),
        figure(
          `word errors beside the names, ${names.length} keywords`,
          "%",
          [named.others],
          atMost(tenths(plain.others + 0.3)),
        ),
        figure("word errors beside the names, 1,000 keywords", "%", [amongMany.others]),
        figure("word errors of sentences without names, without keywords", "%", [ordinaryErrors[0]!]),
        figure(
          "word errors of sentences without names, 1,000 keywords",
          "%",
          [ordinaryErrors[1]!],
          atMost(tenths(ordinaryErrors[0]! + 0.3)),
        ),
      ],
    },
    {
      title: "Keywords: processor time",
      method: `${ordinary.length} sentences without names, ${runs} times with 1,000 keywords and without in turn, one thread; the sum of each sentence's shortest processor time.`,
      figures: besideFloor(floor, subject, atMost(1.05)),
    },
  ] satisfies ReadonlyArray<Part>
})

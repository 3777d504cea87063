// The adapter `kokoro-onnx`: published Kokoro-82M files (model, symbol table, voices) as a speech engine.
// Roles in `files`: `model` (graph), `tokenizer` (symbol table), `voices` (folder of `<id>.bin`).
import * as Effect from "effect/Effect"
import { samplesToMs } from "#domain/audio/Audio.ts"
import { isMixture, languageOfVoice, languagesOfVoices, mixtureOf } from "#domain/models/PresetVoices.ts"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import {
  callFailed,
  type EngineDescriptor,
  type EngineError,
  type EngineSpec,
  invalidInput,
  loadFailed,
  type Outlet,
  type SpeechEngine,
} from "../protocol/Engine.ts"
import { decodeOptions, fileOf } from "../shared/files/EngineSpecFiles.ts"
import { notInstalled } from "../shared/files/OptionalPackage.ts"
import { optionsOf } from "../shared/onnx/OnnxOptions.ts"
import { limitThreads } from "../shared/onnx/ThreadLimit.ts"
import { chooseThreads } from "../shared/onnx/ThreadProbe.ts"
import * as KokoroGraph from "../shared/speech/SpeechGraph.ts"
import { loadSymbols } from "../shared/speech/Symbols.ts"
import { checkedSpeed, priorityOf, type Speaker, speak } from "../shared/speech/Utterance.ts"
import {
  constantStyle,
  loadVoices,
  mixedStyle,
  styleSize,
  type VoiceStyle,
} from "../shared/speech/VoiceStyles.ts"
import type { Fragment } from "../shared/speech/WordSymbols.ts"
import { cleanText } from "../shared/text/CleanText.ts"
import { englishText } from "../shared/text/EnglishText.ts"
import { sentences } from "../shared/text/Sentences.ts"
import { type EnglishPhonemes, englishPackage, loadEnglish } from "./Espeak.ts"
import { languagesPackage, loadEspeak } from "./EspeakLanguages.ts"
import { japanesePackage, loadJapanese } from "./Japanese.ts"
import { phonemeFragments, rewriteEnglish } from "./KokoroPhonemes.ts"
import { loadMandarin, mandarinPackage } from "./Mandarin.ts"
import { SpeechOptions } from "./Options.ts"
import { espeakFragments, espeakVoices, spacelessFragments } from "./OtherLanguages.ts"

/** English front end: text → phoneme fragments, sentence by sentence. */
export async function* englishFragments(
  text: string,
  british: boolean,
  phonemes: EnglishPhonemes,
): AsyncGenerator<Fragment> {
  const voice = british ? "en" : "en-us"
  for (const sentence of sentences(cleanText(text))) {
    const speakable = englishText(sentence, british ? "british" : "american")
    yield* phonemeFragments(speakable, async (clause) =>
      rewriteEnglish(await phonemes(clause, voice), british),
    )
  }
}

/** The first is short because weights of published size take longer for a sentence than to open. */
const warmUpTexts = [
  "Yes.",
  "Any voice that you can lend me, I will use.",
  "The quick brown fox jumps over the lazy dog.",
]

/** Milliseconds of computing after which a load waits no longer: small weights take less for all the texts. A guess. */
const warmUpMs = 100

/**
 * Synthesises a word and then sentences of each reader without output, and only reads them once that has taken long enough. At their first
 * call eSpeak reads its dictionaries, the graph allocates, and both are compiled (the first piece took 74 ms without this, 20 with it).
 * Returns the real-time factor of what was synthesised last, with the silence around it, which is half of a word's audio; replies correct
 * the factor later.
 */
export const warmUp = (
  speaker: Speaker,
  readers: ReadonlyArray<Reader>,
  style: VoiceStyle,
): Effect.Effect<number, EngineError> =>
  Effect.gen(function* () {
    let spentMs = 0
    let factor = 0
    let waveSamples = 0
    const { synthesize, wholeSpeed } = speaker.graph
    const measured: Speaker = {
      ...speaker,
      graph: {
        wholeSpeed,
        synthesize: (...call) =>
          Effect.tap(synthesize(...call), ({ wave }) =>
            Effect.sync(() => {
              waveSamples += wave.length
            }),
          ),
      },
    }
    for (const [at, text] of warmUpTexts.entries()) {
      if (at > 0 && spentMs > warmUpMs) break
      for (const read of readers) {
        if (spentMs > warmUpMs) {
          yield* phonemes(read(text))
          continue
        }
        const utterance = {
          fragments: read(text),
          style: Effect.succeed(style),
          speed: 1,
          priority: "batch",
        } as const
        waveSamples = 0
        const { computeMs } = yield* speak(measured, utterance, discard)
        spentMs += computeMs
        factor = computeMs / samplesToMs(waveSamples, speaker.rateHz)
      }
    }
    return factor
  }).pipe(Effect.mapError((error) => loadFailed("model", `first words: ${error.detail}`)))

/** Reads to the end of the text. */
const phonemes = (fragments: AsyncIterable<Fragment>): Effect.Effect<void, EngineError> =>
  Effect.tryPromise({
    try: async () => {
      for await (const _ of fragments);
    },
    catch: (cause) => callFailed(String(cause)),
  })

const discard: Outlet<"speech"> = {
  started: () => {},
  push: () => {},
  paused: () => false,
  resumed: Effect.void,
}

type Reader = (text: string) => AsyncIterable<Fragment>

interface FrontEnds {
  /** How the texts of a voice are read, of a mixture those of its first voice; undefined for a language that cannot be. */
  readonly fragmentsOf: (voice: string) => Reader | undefined
  /** A package that would read one of the voices. */
  readonly missing: string | undefined
}

/** Voices of an operator's own with other names are American or British by their first letter. */
const languageOf = (voice: string): string | undefined =>
  languageOfVoice(voice) ?? (/^[ab]/.test(voice) ? "en" : undefined)

const exampleVoices = "af_bella (American), bf_emma (British) or ef_dora (Spanish)"

/** What reads each language. */
const packages: Readonly<Record<string, string>> = {
  en: englishPackage,
  ja: japanesePackage,
  zh: mandarinPackage,
  ...Object.fromEntries(Object.keys(espeakVoices).map((language) => [language, languagesPackage])),
}

/** Loads what reads the languages of these voices, and nothing else. */
const frontEndsFor = (ids: ReadonlyArray<string>): Effect.Effect<FrontEnds, EngineError> =>
  Effect.gen(function* () {
    const languages = new Set(ids.map(languageOf))
    const needs = (...some: ReadonlyArray<string>) => some.some((language) => languages.has(language))
    const none = Effect.succeed(undefined)
    // Chinese and Japanese texts have English words in them.
    const english = yield* needs("en", "ja", "zh") ? loadEnglish : none
    const espeak = yield* needs(...Object.keys(espeakVoices)) ? loadEspeak : none
    const japanese = yield* needs("ja") ? loadJapanese : none
    const mandarin = yield* needs("zh") ? loadMandarin : none
    const fragmentsOf = (voice: string): Reader | undefined => {
      const language = languageOf(voice)
      if (language === undefined) return undefined
      if (language === "en")
        return english && ((text) => englishFragments(text, voice.startsWith("b"), english))
      if (language === "ja") return japanese && ((text) => spacelessFragments(text, "ja", japanese, english))
      if (language === "zh") return mandarin && ((text) => spacelessFragments(text, "zh", mandarin, english))
      return espeak && ((text) => espeakFragments(text, language, espeak))
    }
    const unread = ids.find((id) => languageOf(id) !== undefined && fragmentsOf(id) === undefined)
    return { fragmentsOf, missing: unread && packages[languageOf(unread)!] }
  })

const acquire = (spec: EngineSpec) =>
  Effect.gen(function* () {
    const options = yield* decodeOptions(SpeechOptions, spec)
    const symbols = yield* loadSymbols(yield* fileOf(spec, "tokenizer"))
    const all = yield* loadVoices(yield* fileOf(spec, "voices"), options.voices)
    const frontEnds = yield* frontEndsFor([...all.keys()])
    const voices = new Map([...all].filter(([id]) => frontEnds.fragmentsOf(id) !== undefined))
    if (voices.size === 0) {
      return yield* frontEnds.missing === undefined
        ? loadFailed("voices", `none has a name of a language that can be read, such as ${exampleVoices}`)
        : notInstalled(frontEnds.missing)
    }
    const graph = yield* KokoroGraph.open(yield* fileOf(spec, "model"), yield* optionsOf(spec))
    const speaker: Speaker = {
      graph,
      symbols,
      calls: new DeadlineQueue(),
      rateHz: options.rateHz,
      maxSymbols: options.maxSymbols,
    }
    // In alphabetical order, so that American English is the first where it is there.
    const ids = [...voices.keys()]
    const [first] = ids as [string, ...Array<string>]
    const british = ids.find((id) => id.startsWith("b"))
    const readers = [...(british === undefined ? [] : [british]), first].map(
      (id) => frontEnds.fragmentsOf(id)!,
    )
    const realTimeFactor = yield* warmUp(speaker, readers, constantStyle(new Float32Array(styleSize)))
    const styleOf = (preset: string): Effect.Effect<VoiceStyle, EngineError> => {
      const known = voices.get(preset)
      if (known !== undefined) return Effect.succeed(known)
      if (!isMixture(preset)) {
        return Effect.fail(invalidInput("voice", `unknown voice; there are ${ids.join(", ")}`))
      }
      const mixture = mixtureOf(preset, (voice) => (voices.has(voice) ? voice : undefined))
      return "problem" in mixture
        ? Effect.fail(invalidInput("voice", mixture.problem))
        : Effect.succeed(mixedStyle(mixture.voices.map(({ voice, weight }) => [voices.get(voice)!, weight])))
    }
    const engine: SpeechEngine = {
      kind: "speech",
      facts: {
        slots: options.slots,
        voices: ids,
        languages: languagesOfVoices(ids),
        realTimeFactor,
        summary: `kokoro, ${voices.size} voices, ${spec.threads} thread${spec.threads === 1 ? "" : "s"}`,
      },
      synthesize: (request, out) =>
        Effect.gen(function* () {
          const id = "preset" in request.voice ? request.voice.preset : undefined
          if (id === undefined) return yield* invalidInput("voice", "this model has preset voices only")
          const style = yield* styleOf(id)
          const speed = yield* checkedSpeed(request.speed, graph)
          const fragments = frontEnds.fragmentsOf(id)!(request.text)
          return yield* speak(
            speaker,
            { fragments, style: Effect.succeed(style), speed, priority: priorityOf(request) },
            out,
          )
        }),
    }
    return engine
  })

export const kokoroOnnx: EngineDescriptor<"speech"> = {
  adapter: "kokoro-onnx",
  kind: "speech",
  chooseThreads,
  limitThreads,
  acquire,
}

// The adapter `style-clone-onnx`: a style encoder and a synthesiser with the tensors of Kokoro. The voice is a
// reference clip, or "default"; the transcript of the clip is accepted and not needed.
// Roles in `files`: `model`, `tokenizer` (as in kokoro-onnx), `styleEncoder` (graph), `defaultVoice` (voice file).
//
// The same text, voice and language give the same bytes, whatever runs beside it and after restarts: both graphs are
// refused at load if they draw random numbers, a call's threads are fixed at load, pieces depend on the text
// alone, and no state is kept between requests.
import * as Effect from "effect/Effect"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import { englishPackage, loadEnglish } from "../kokoro/Espeak.ts"
import { type EspeakLanguages, languagesPackage, loadEspeak } from "../kokoro/EspeakLanguages.ts"
import { englishFragments, warmUp } from "../kokoro/KokoroOnnx.ts"
import { languageFragments } from "../kokoro/OtherLanguages.ts"
import {
  type EngineDescriptor,
  type EngineError,
  type EngineSpec,
  invalidInput,
  type SpeechEngine,
  type SynthesizeRequest,
} from "../protocol/Engine.ts"
import { decodeOptions, fileOf } from "../shared/files/EngineSpecFiles.ts"
import { notInstalled } from "../shared/files/OptionalPackage.ts"
import { requireRepeatable } from "../shared/onnx/GraphOperators.ts"
import { optionsOf } from "../shared/onnx/OnnxOptions.ts"
import { limitThreads } from "../shared/onnx/ThreadLimit.ts"
import { chooseThreads } from "../shared/onnx/ThreadProbe.ts"
import { checkClip, encoderAudio } from "../shared/speech/ReferenceClip.ts"
import * as KokoroGraph from "../shared/speech/SpeechGraph.ts"
import { loadSymbols, type Symbols } from "../shared/speech/Symbols.ts"
import { checkedSpeed, priorityOf, type Speaker, speak } from "../shared/speech/Utterance.ts"
import { constantStyle, loadVoice, type VoiceStyle } from "../shared/speech/VoiceStyles.ts"
import type { Fragment } from "../shared/speech/WordSymbols.ts"
import { inInventory } from "./Inventory.ts"
import { type Language, languageCodes } from "./Languages.ts"
import { CloneOptions } from "./Options.ts"
import * as StyleEncoder from "./StyleEncoder.ts"

const defaultVoice = "default"

const foreignFragments = (
  text: string,
  { code, tidy, voice }: Language & { readonly voice: string },
  espeak: EspeakLanguages,
  symbols: Symbols,
): AsyncGenerator<Fragment> =>
  languageFragments(text, code, (clause) => inInventory(tidy(espeak.phonemes(clause, voice)), symbols))

const acquire = (spec: EngineSpec) =>
  Effect.gen(function* () {
    const options = yield* decodeOptions(CloneOptions, spec)
    const model = yield* fileOf(spec, "model")
    const encoderFile = yield* fileOf(spec, "styleEncoder")
    yield* requireRepeatable(model)
    yield* requireRepeatable(encoderFile)
    const symbols = yield* loadSymbols(yield* fileOf(spec, "tokenizer"))
    const preset = yield* loadVoice(yield* fileOf(spec, "defaultVoice"), defaultVoice)
    const english = yield* loadEnglish
    const espeak = yield* loadEspeak
    const onnx = yield* optionsOf(spec)
    const encoder = yield* StyleEncoder.open(encoderFile, onnx)
    const graph = yield* KokoroGraph.open(model, onnx)
    const speaker: Speaker = {
      graph,
      symbols,
      calls: new DeadlineQueue(),
      rateHz: options.rateHz,
      maxSymbols: options.maxSymbols,
    }

    /** Undefined for a language whose package is not installed. */
    const readerOf = (language: Language): ((text: string) => AsyncIterable<Fragment>) | undefined => {
      const { voice } = language
      if (voice === undefined) return english && ((text) => englishFragments(text, false, english))
      return espeak && ((text) => foreignFragments(text, { ...language, voice }, espeak, symbols))
    }
    const readers = new Map(
      languageCodes.flatMap((language) => {
        const reader = readerOf(language)
        return reader === undefined ? [] : [[language.code, reader] as const]
      }),
    )
    const languages = [...readers.keys()]
    const [warmUpReader] = readers.values()
    if (warmUpReader === undefined) return yield* notInstalled(`${englishPackage} or ${languagesPackage}`)
    const fragmentsOf = (text: string, code: string): Effect.Effect<AsyncIterable<Fragment>, EngineError> => {
      const reader = readers.get(code)
      return reader === undefined
        ? Effect.fail(invalidInput("language", `must be one of ${languages.join(", ")}`))
        : Effect.succeed(reader(text))
    }

    const styleOf = (
      voice: SynthesizeRequest["voice"],
    ): Effect.Effect<Effect.Effect<VoiceStyle, EngineError>, EngineError> => {
      if ("preset" in voice) {
        return voice.preset === defaultVoice
          ? Effect.succeed(Effect.succeed(preset))
          : Effect.fail(invalidInput("voice", `must be "${defaultVoice}" or a reference clip`))
      }
      const clip = checkClip(voice.clip, voice.rateHz)
      if ("problem" in clip) return Effect.fail(invalidInput("voice", clip.problem))
      const { speech, rateHz } = clip
      return Effect.succeed(
        Effect.suspend(() => encoder.style(encoderAudio(speech, rateHz, options.encoderHz))).pipe(
          Effect.map(constantStyle),
        ),
      )
    }

    const warm = yield* encoder.style(new Float32Array(2 * options.encoderHz))
    const realTimeFactor = yield* warmUp(speaker, [warmUpReader], constantStyle(warm))

    const engine: SpeechEngine = {
      kind: "speech",
      facts: {
        slots: options.slots,
        voices: [defaultVoice],
        languages,
        realTimeFactor,
        summary: `style clone, ${languages.length} languages, ${spec.threads} thread${spec.threads === 1 ? "" : "s"}`,
      },
      synthesize: (request, out) =>
        Effect.gen(function* () {
          const speed = yield* checkedSpeed(request.speed, graph)
          const fragments = yield* fragmentsOf(request.text, request.language)
          const style = yield* styleOf(request.voice)
          return yield* speak(speaker, { fragments, style, speed, priority: priorityOf(request) }, out)
        }),
    }
    return engine
  })

export const cloneOnnx: EngineDescriptor<"speech"> = {
  adapter: "style-clone-onnx",
  kind: "speech",
  chooseThreads,
  limitThreads,
  acquire,
}

// The adapter `kokoro-onnx`: published Kokoro-82M files (model, symbol table, voices) as a speech engine.
// Roles in `files`: `model` (graph), `tokenizer` (symbol table), `voices` (folder of `<id>.bin`).
import * as Effect from "effect/Effect"
import { samplesToMs } from "#domain/audio/Audio.ts"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import type { EngineDescriptor, EngineError, EngineSpec, Outlet, SpeechEngine } from "../protocol/Engine.ts"
import { decodeOptions, fileOf, loadFailed } from "../shared/files/EngineSpecFiles.ts"
import { notInstalled } from "../shared/files/OptionalPackage.ts"
import { optionsOf } from "../shared/onnx/OnnxOptions.ts"
import { limitThreads } from "../shared/onnx/ThreadLimit.ts"
import { chooseThreads } from "../shared/onnx/ThreadProbe.ts"
import * as KokoroGraph from "../shared/speech/SpeechGraph.ts"
import { loadSymbols } from "../shared/speech/Symbols.ts"
import { checkedSpeed, invalidInput, priorityOf, type Speaker, speak } from "../shared/speech/Utterance.ts"
import { constantStyle, loadVoices, styleSize, type VoiceStyle } from "../shared/speech/VoiceStyles.ts"
import type { Fragment } from "../shared/speech/WordSymbols.ts"
import { cleanText } from "../shared/text/CleanText.ts"
import { englishText } from "../shared/text/EnglishText.ts"
import { sentences } from "../shared/text/Sentences.ts"
import { type EnglishPhonemes, englishPackage, loadEnglish } from "./Espeak.ts"
import { phonemeFragments, rewriteEnglish } from "./KokoroPhonemes.ts"
import { SpeechOptions } from "./Options.ts"

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

/**
 * Synthesises two sentences without output. At their first call eSpeak reads its dictionaries, the graph allocates, and
 * both are compiled (the first piece took 74 ms without this, 20 with it). The second sentence measures the real-time
 * factor.
 */
export const warmUp = (
  speaker: Speaker,
  fragments: AsyncIterable<Fragment>,
  style: VoiceStyle,
): Effect.Effect<number, EngineError> =>
  speak(speaker, { fragments, style: Effect.succeed(style), speed: 1, priority: "batch" }, discard).pipe(
    Effect.mapError((error) => loadFailed("model", `first words: ${error.detail}`)),
    Effect.map(({ computeMs, samples }) => computeMs / samplesToMs(samples, speaker.rateHz)),
  )

export const warmUpText =
  "Any voice that you can lend me, I will use. The quick brown fox jumps over the lazy dog."

const discard: Outlet<"speech"> = {
  started: () => {},
  push: () => {},
  paused: () => false,
  resumed: Effect.void,
}

const acquire = (spec: EngineSpec) =>
  Effect.gen(function* () {
    const options = yield* decodeOptions(SpeechOptions, spec)
    const phonemes = yield* loadEnglish
    if (phonemes === undefined) return yield* notInstalled(englishPackage)
    const symbols = yield* loadSymbols(yield* fileOf(spec, "tokenizer"))
    const all = yield* loadVoices(yield* fileOf(spec, "voices"), options.voices)
    // The first letter of an id is its accent. The published set has other languages, which this front end lacks.
    const voices = new Map([...all].filter(([id]) => /^[ab]/.test(id)))
    if (voices.size === 0) return yield* loadFailed("voices", "none is American (a…) or British (b…)")
    const graph = yield* KokoroGraph.open(yield* fileOf(spec, "model"), yield* optionsOf(spec))
    const speaker: Speaker = {
      graph,
      symbols,
      calls: new DeadlineQueue(),
      rateHz: options.rateHz,
      maxSymbols: options.maxSymbols,
    }
    const warm = (british: boolean) =>
      warmUp(
        speaker,
        englishFragments(warmUpText, british, phonemes),
        constantStyle(new Float32Array(styleSize)),
      )
    yield* warm(true)
    const realTimeFactor = yield* warm(false)
    const engine: SpeechEngine = {
      kind: "speech",
      facts: {
        slots: options.slots,
        rateHz: options.rateHz,
        voices: [...voices.keys()],
        languages: ["en"],
        cloning: false,
        realTimeFactor,
        summary: `kokoro, ${voices.size} voices, ${spec.threads} thread${spec.threads === 1 ? "" : "s"}`,
      },
      synthesize: (request, out) =>
        Effect.gen(function* () {
          const id = "preset" in request.voice ? request.voice.preset : undefined
          if (id === undefined) return yield* invalidInput("voice", "this model has preset voices only")
          const voice = voices.get(id)
          if (voice === undefined)
            return yield* invalidInput("voice", `unknown voice; there are ${[...voices.keys()].join(", ")}`)
          const speed = yield* checkedSpeed(request.speed, graph)
          const fragments = englishFragments(request.text, id.startsWith("b"), phonemes)
          return yield* speak(
            speaker,
            { fragments, style: Effect.succeed(voice), speed, priority: priorityOf(request) },
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

// The adapter `chatterbox-onnx`: the published multilingual Chatterbox (four graphs and a tokenizer) as a cloning
// speech engine. The transcript of a clip is accepted and not needed.
// Roles in `files`: `speechEncoder`, `embedTokens`, `languageModel`, `conditionalDecoder`, `tokenizer`, `tokenizerConfig`,
// `defaultVoice` (a WAV file), and for Chinese `cangjie` (Cangjie5_TC.json). Japanese has to be written in kana:
// the model was trained on readings, and there is no dictionary of kanji here.
//
// The same text, voice and language give the same bytes: always the most probable token is taken, and graphs that draw
// random numbers are refused unless the catalog sets `repeatable: false`.
import { readFile } from "node:fs/promises"
import { Tokenizer } from "@huggingface/tokenizers"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import wavefile from "wavefile"
import { samplesToMs } from "#domain/audio/Audio.ts"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import {
  callFailed,
  type EngineDescriptor,
  type EngineError,
  type EngineSpec,
  invalidInput,
  loadFailed,
  type SpeechEngine,
  type SynthesizeRequest,
} from "../protocol/Engine.ts"
import { decodeOptions, fileOf, readJsonFile } from "../shared/files/EngineSpecFiles.ts"
import { requireRepeatable } from "../shared/onnx/GraphOperators.ts"
import { optionsOf } from "../shared/onnx/OnnxOptions.ts"
import { limitThreads } from "../shared/onnx/ThreadLimit.ts"
import { chooseThreads } from "../shared/onnx/ThreadProbe.ts"
import { type PiecePcm, pauseSamples, trimmedPcm } from "../shared/speech/Pcm.ts"
import { Playout } from "../shared/speech/Playout.ts"
import { checkClip, encoderAudio } from "../shared/speech/ReferenceClip.ts"
import { priorityOf } from "../shared/speech/Utterance.ts"
import { spokenWords, writtenPieceWords } from "../shared/speech/WordDurations.ts"
import { CangjieTable, cangjie } from "./Cangjie.ts"
import { type ClonedVoice, openGraphs } from "./ChatterboxGraphs.ts"
import { chatterboxPieces, languageCodes, taggedText } from "./ChatterboxText.ts"
import { ChatterboxOptions } from "./Options.ts"
import { specialTokens, speechTokens, type WhenDue } from "./SpeechTokens.ts"

const sampleRateHz = 24_000
const defaultVoice = "default"

/** 25 tokens are a second of speech, about 15 characters. The limit is three times that, and at most 40 s. */
const maxTokens = (piece: string): number => Math.min(1_000, 25 + 5 * piece.length)

/** Silent tokens at the end, as published: the decoder cuts the last sound without them. */
const trailingSilence = [specialTokens.silence, specialTokens.silence, specialTokens.silence]

const roles = ["speechEncoder", "embedTokens", "languageModel", "conditionalDecoder"] as const

const graphFiles = Effect.fnUntraced(function* (spec: EngineSpec, repeatable: boolean) {
  const files: Record<string, string> = {}
  for (const role of roles) {
    const path = yield* fileOf(spec, role)
    if (repeatable) yield* requireRepeatable(path)
    files[role] = path
  }
  return files as Record<(typeof roles)[number], string>
})

const readTokenizer = Effect.fnUntraced(function* (spec: EngineSpec) {
  const tokenizerJson = yield* readJsonFile(spec, "tokenizer")
  const tokenizerConfig = yield* readJsonFile(spec, "tokenizerConfig")
  return yield* Effect.try({
    try: () => new Tokenizer(tokenizerJson as object, tokenizerConfig as object),
    catch: (cause) => loadFailed("tokenizer", (cause as Error).message),
  })
})

/** The table of Chinese characters, if the catalog names it. */
const readGlyphs = Effect.fnUntraced(function* (spec: EngineSpec) {
  if (spec.files.cangjie === undefined) return undefined
  const table = yield* Schema.decodeUnknownEffect(CangjieTable)(yield* readJsonFile(spec, "cangjie")).pipe(
    Effect.mapError((error) => loadFailed("cangjie", error.message)),
  )
  return cangjie(table)
})

/** The samples of a WAV file, s16 mono, with its rate. */
const readWav = Effect.fnUntraced(function* (spec: EngineSpec, role: string) {
  const path = yield* fileOf(spec, role)
  return yield* Effect.tryPromise({
    try: async () => {
      const wav = new wavefile.WaveFile(await readFile(path))
      wav.toBitDepth("16")
      const samples: unknown = wav.getSamples(false, Int16Array)
      const channel: unknown = Array.isArray(samples) ? samples[0] : samples
      if (!(channel instanceof Int16Array)) throw new TypeError("no samples")
      return { clip: channel, rateHz: (wav.fmt as { readonly sampleRate: number }).sampleRate }
    },
    catch: () => loadFailed(role, "is not a WAV file"),
  })
})

const acquire = (spec: EngineSpec) =>
  Effect.gen(function* () {
    const options = yield* decodeOptions(ChatterboxOptions, spec)
    const files = yield* graphFiles(spec, options.repeatable)
    const tokenizer = yield* readTokenizer(spec)
    const glyphs = yield* readGlyphs(spec)
    const defaultClip = yield* readWav(spec, "defaultVoice")
    const graphs = yield* openGraphs(files, {
      ...(yield* optionsOf(spec)),
      exaggeration: options.exaggeration,
    })
    const calls = new DeadlineQueue()
    const languages = languageCodes.filter((code) => code !== "zh" || glyphs !== undefined)

    /** The clip is checked before the reply begins; encoding it is a native call and waits for its deadline. */
    const encoded = (
      clip: Int16Array,
      rateHz: number,
    ): Effect.Effect<Effect.Effect<ClonedVoice, EngineError>, EngineError> => {
      const checked = checkClip(clip, rateHz)
      if ("problem" in checked) return Effect.fail(invalidInput("voice", checked.problem))
      return Effect.succeed(
        Effect.suspend(() => graphs.voice(encoderAudio(checked.speech, checked.rateHz, sampleRateHz))),
      )
    }
    const preset = yield* Effect.flatten(encoded(defaultClip.clip, defaultClip.rateHz)).pipe(
      Effect.mapError((error) => loadFailed("defaultVoice", error.detail)),
    )
    const voiceOf = ({ voice }: SynthesizeRequest) => {
      if (!("preset" in voice)) return encoded(voice.clip, voice.rateHz)
      return voice.preset === defaultVoice
        ? Effect.succeed(Effect.succeed(preset))
        : Effect.fail(invalidInput("voice", `must be "${defaultVoice}" or a reference clip`))
    }

    /** Speech tokens and their waveform, s16; undefined if the model returned NaN, empty if it produced no speech. */
    const speak = Effect.fnUntraced(function* (
      piece: string,
      language: string,
      voice: ClonedVoice,
      whenDue: WhenDue,
    ) {
      const { ids } = tokenizer.encode(taggedText(piece, language, glyphs))
      const limits = { ...options, maxTokens: maxTokens(piece) }
      const tokens = yield* speechTokens(graphs, voice, ids, limits, whenDue)
      if (tokens === undefined) return undefined
      if (tokens.length === 0) return noSpeech
      const all = [...voice.promptTokens, ...tokens, ...trailingSilence]
      return trimmedPcm(yield* whenDue(graphs.waveform(all, voice)), sampleRateHz)
    })
    // Synthesises once without output: graphs that do not fit together fail at load, and the cost of speech is measured.
    const beganMs = yield* monotonicMs
    const warm = yield* speak("One, two, three.", "en", preset, (work) => work)
    if (warm === undefined) return yield* loadFailed("languageModel", "returned NaN")
    const realTimeFactor = ((yield* monotonicMs) - beganMs) / samplesToMs(warm.samples.length, sampleRateHz)

    const engine: SpeechEngine = {
      kind: "speech",
      facts: {
        slots: options.slots,
        voices: [defaultVoice],
        languages,
        ...(warm.samples.length === 0 ? {} : { realTimeFactor }),
        summary: `chatterbox, ${languages.length} languages, ${spec.threads} thread${spec.threads === 1 ? "" : "s"}`,
      },
      synthesize: (request, out) =>
        Effect.gen(function* () {
          const { language, speed, text } = request
          if (speed !== 1) return yield* invalidInput("speed", "must be 1.0 with this model")
          if (!languages.includes(language)) {
            return yield* invalidInput("language", `must be one of ${languages.join(", ")}`)
          }
          const encoding = yield* voiceOf(request)
          const pieces = chatterboxPieces(text)
          let piece = pieces.next()
          if (piece.done === true) return yield* invalidInput("input", "has nothing that can be pronounced")
          out.started({ pieces: 1 })
          const playout = yield* Playout.make(
            { calls, rateHz: sampleRateHz, priority: priorityOf(request) },
            out,
          )
          const voice = yield* playout.whenDue(encoding)
          while (piece.done !== true) {
            yield* playout.wanted
            const pcm = yield* speak(piece.value, language, voice, (work) => playout.whenDue(work))
            if (pcm === undefined) return yield* notNumbers
            const { samples } = pcm
            // The graphs tell no durations, and the silence at both ends is left out already.
            const made = {
              waveSamples: samples.length,
              from: 0,
              samples: samples.length,
              startsAt: playout.samples,
            }
            const words = spokenWords(writtenPieceWords(piece.value), piece.value.length + 2, undefined, made)
            yield* playout.give(samples, words)
            piece = pieces.next()
            if (piece.done !== true) playout.push(new Int16Array(pauseSamples("sentence", 1, sampleRateHz)))
          }
          return playout.end
        }),
    }
    return engine
  })

const noSpeech: PiecePcm = { samples: new Int16Array(0), from: 0 }

const notNumbers = callFailed("the model returned NaN")

export const chatterboxOnnx: EngineDescriptor<"speech"> = {
  adapter: "chatterbox-onnx",
  kind: "speech",
  chooseThreads,
  limitThreads,
  acquire,
}

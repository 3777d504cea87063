// Loads the product's own engines in this process, with the weights of a catalog, and runs one request at a time.
import { dirname } from "node:path"
import { Context, Effect, Layer } from "effect"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import type { JsonObject } from "#domain/wire/Json.ts"
import { adapters } from "#engines/adapters.ts"
import type {
  ChatTurn,
  Engine,
  EngineKind,
  PcmChunk,
  Segment,
  SpeechEngine,
  SynthesizeRequest,
  TextDelta,
  TextEngine,
  TranscriptionEngine,
} from "#engines/protocol/Engine.ts"
import { encoderAudio } from "#engines/shared/speech/ReferenceClip.ts"
import { readCatalog } from "#weights/CatalogFile.ts"
import { locate } from "#weights/ModelFiles.ts"

/** Path of the evaluated catalog: the built-in one, or one with candidates for it. */
export class EvaluatedCatalog extends Context.Service<EvaluatedCatalog, { readonly path: string }>()(
  "models/eval/EvaluatedCatalog",
) {
  static readonly at = (path: string = builtInCatalog) => Layer.succeed(EvaluatedCatalog, { path })
}

/** Ids of the evaluated models in the catalog. */
export const evaluated = {
  transcriber: "stt-large-v3-turbo",
  multilingual: "stt-multi-03-2026",
  voices: "tts-82m",
  cloner: "tts-3b-ml",
  chat: "llm-3.5-27b",
  pictures: "llm-3.6-35b-a3b",
}

/** Source of each evaluated weight file → its SHA-256 from the catalog. The results are valid for these files only. */
export const evaluatedWeights = Effect.gen(function* () {
  const { path } = yield* EvaluatedCatalog
  const { models } = yield* readCatalog(path)
  const ids = new Set(Object.values(evaluated))
  const files = models.filter(({ id }) => ids.has(id)).flatMap((entry) => Object.values(entry.files))
  return Object.fromEntries(
    files.flatMap(({ sha256, source }) => (sha256 === undefined ? [] : [[source, sha256]])),
  )
})

const load = Effect.fnUntraced(function* (modelId: string) {
  const { path } = yield* EvaluatedCatalog
  const { models } = yield* readCatalog(path)
  const entry = models.find(({ id }) => id === modelId)
  const adapter = entry === undefined ? undefined : adapters[entry.adapter]
  if (entry === undefined || adapter === undefined) {
    return yield* Effect.die(new Error(`${dirname(path)}: the catalog has no ${modelId}`))
  }
  const { files, problem } = yield* locate(path, entry)
  if (problem !== undefined) return yield* Effect.die(new Error(`${modelId}: ${problem}`))
  const { acquire } = yield* Effect.promise(adapter)
  return yield* acquire({ modelId, adapter: entry.adapter, files, options: entry.options, threads: 1 })
})

const isKind =
  <Kind extends EngineKind>(kind: Kind) =>
  (engine: Engine): engine is Extract<Engine, { kind: Kind }> =>
    engine.kind === kind

const loadAs = Effect.fnUntraced(function* <Kind extends EngineKind>(modelId: string, kind: Kind) {
  const engine = yield* load(modelId)
  if (isKind(kind)(engine)) return engine
  return yield* Effect.die(new Error(`${modelId} is no ${kind} engine`))
})

export const loadTranscriber = loadAs(evaluated.transcriber, "transcription")
export const loadMultilingual = loadAs(evaluated.multilingual, "transcription")
export const loadVoices = loadAs(evaluated.voices, "speech")
export const loadCloner = loadAs(evaluated.cloner, "speech")
export const loadChatModel = loadAs(evaluated.chat, "text")

/** Collects what an engine emits for one request, and never pauses it. */
export const collector = <Unit>() => {
  const units: Array<Unit> = []
  const push = (unit: Unit) => void units.push(unit)
  return { units, started: () => {}, push, paused: () => false, resumed: Effect.void }
}

/** Runs the work; its result and its duration in seconds. */
const timed = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const startedMs = performance.now()
  const result = yield* work
  return { result, seconds: (performance.now() - startedMs) / 1000 }
})

export interface Transcript {
  readonly text: string
  /** Times in seconds from the first sample. */
  readonly segments: ReadonlyArray<Segment>
  readonly computeSeconds: number
}

/** Sample rate of what is transcribed. */
const rateHz = 16_000

/** Transcribes a whole file in windows, as a node does. `samples`: f32 mono, 16 kHz. */
export const transcribe = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  samples: Float32Array,
  {
    keywords,
    language = "en",
  }: { readonly keywords?: ReadonlyArray<string>; readonly language?: string } = {},
) {
  const longest = engine.facts.windowSeconds * rateHz
  const segments: Array<Segment> = []
  let [at, computeSeconds] = [0, 0]
  let previousTokens: ReadonlyArray<number> = []
  while (at < samples.length) {
    const window = samples.subarray(at, Math.min(samples.length, at + longest))
    const out = collector<Segment>()
    const transcription = engine.transcribe(
      {
        samples: window,
        language,
        prompt: "",
        previousTokens,
        temperature: 0,
        punctuation: undefined,
        words: false,
        ...(keywords === undefined ? {} : { keywords }),
        last: at + window.length >= samples.length,
      },
      out,
    )
    const { result, seconds } = yield* timed(transcription)
    computeSeconds += seconds
    const shift = at / rateHz
    segments.push(...out.units.map((s) => ({ ...s, start: s.start + shift, end: s.end + shift })))
    previousTokens = result.previousTokens
    at += result.consumedSamples > 0 ? result.consumedSamples : window.length
  }
  const text = segments.map((segment) => segment.text).join("")
  return { text: text.trim(), segments, computeSeconds } satisfies Transcript
})

export interface Speech {
  /** s16 mono 24 kHz. */
  readonly samples: Int16Array
  readonly computeSeconds: number
}

/** Speaks a text with a voice. */
export const speak = Effect.fnUntraced(function* (
  engine: SpeechEngine,
  text: string,
  voice: SynthesizeRequest["voice"],
  { language = "en", speed = 1 }: { readonly language?: string; readonly speed?: number } = {},
) {
  const out = collector<PcmChunk>()
  const { seconds } = yield* timed(engine.synthesize({ text, voice, language, speed }, out))
  const samples = new Int16Array(out.units.reduce((sum, unit) => sum + unit.samples.length, 0))
  let at = 0
  for (const unit of out.units) {
    samples.set(unit.samples, at)
    at += unit.samples.length
  }
  return { samples, computeSeconds: seconds } satisfies Speech
})

/** Synthesised speech as input of the transcription model: f32 16 kHz. */
export const toTranscriberInput = (samples: Int16Array): Float32Array => encoderAudio(samples, 24_000, 16_000)

export const greedy = {
  temperature: 0,
  topP: 1,
  topK: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  seed: 0,
}

/** The model's whole reply to a chat, decoded greedily. */
export const answer = Effect.fnUntraced(function* (model: TextEngine, messages: ReadonlyArray<ChatTurn>) {
  const out = collector<TextDelta>()
  const request = { prompt: { turns: messages }, maxTokens: 120, sampling: greedy, stop: [] }
  const { result, seconds } = yield* timed(model.generate(request, out))
  return { text: out.units.map((unit) => unit.text).join(""), ...result, computeSeconds: seconds }
})

/** The messages after a request: the model called a tool, and this is the result. */
export const toolResultTurns = (tool: {
  readonly name: string
  readonly arguments: JsonObject
  readonly result: string
}): ReadonlyArray<ChatTurn> => [
  {
    role: "assistant",
    content: "",
    calls: [{ id: "call_1", name: tool.name, arguments: JSON.stringify(tool.arguments) }],
  },
  { role: "tool", content: tool.result, callId: "call_1", name: tool.name },
]

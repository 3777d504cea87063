// The forms of ONNX exports that adapters read: their graphs and files by role, and what their catalog entries hold. Data, and
// what of it depends on the repository.
import type { ModelEntry, WeightFile } from "#domain/models/ModelEntry.ts"
import { languagesOfVoices } from "#domain/models/PresetVoices.ts"
import type { FoundModel } from "./FoundModel.ts"
import type { ListedFile } from "./HubFolder.ts"
import type { Repository } from "./Repository.ts"

/**
 * Endings of graphs in order of preference. The exports' names: `_quantized` has 8 bits a weight, none is full precision,
 * `_int8` is another form of 8 bits. Graphs of 16 and 4 bits are chosen only by name: not every processor is fast with them.
 */
export const defaultPrecisions = ["_quantized", "", "_int8"]

/** What each form of export has, and how its entry looks. */
export interface Family {
  readonly adapter: string
  readonly kind: ModelEntry["kind"]
  /** In words. */
  readonly what: string
  /** `model_type` of config.json; other exports are recognised by their graphs alone. */
  readonly modelTypes: ReadonlyArray<string>
  /** Role → name of the graph without folder and ending. `*` stands for one text, the same in all graphs. */
  readonly graphs: Readonly<Record<string, string>>
  /** Role → names that the file may have. */
  readonly files: Readonly<Record<string, ReadonlyArray<string>>>
  readonly optional?: Readonly<Record<string, ReadonlyArray<string>>>
  /** Whether a repository whose configuration names no type has this form, if it has all of the graphs. Absent: it has not. */
  readonly isKnownByGraphs?: (repository: Repository) => boolean
  /** Which export to choose instead of one that lacks a file. */
  readonly whole?: string
  /** Graphs that only some precisions exist for; the others stay at full precision. */
  readonly precisions?: ReadonlyArray<string>
  readonly entry: (repository: Repository) => Pick<
    FoundModel,
    "options" | "speech" | "transcription" | "comments"
  > & {
    readonly files?: Readonly<Record<string, WeightFile>>
  }
}

export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** Voices whose language is known by the first letter of their names. */
export const voiceFiles = ({ files }: Repository): ReadonlyArray<ListedFile> =>
  files.filter(({ path }) => /^voices\/[abefhijpz][fm]_[a-z]+\.bin$/.test(path))

const voicesOf = (repository: Repository) => {
  const found = voiceFiles(repository)
  const source = repository.sourceOf("voices")
  const isLocal = !source.startsWith("hf:")
  const members = Object.fromEntries(
    found.map(({ path, sha256, sizeBytes }) => [
      nameOf(path),
      {
        ...(sha256 === undefined ? {} : { sha256 }),
        ...(sizeBytes === undefined ? {} : { sizeBytes }),
      },
    ]),
  )
  return {
    names: found.map(({ path }) => nameOf(path).replace(/\.bin$/, "")),
    // A folder here is read as it is; on a hub its files have to be named.
    file: isLocal ? { source } : { source, files: members },
  }
}

const has = ({ files }: Repository, ...paths: ReadonlyArray<string>): boolean =>
  files.some(({ path }) => paths.includes(path))

/** Languages that Parakeet v3 finds by itself. The first is named where a request names none: the model does not tell which it heard. */
const parakeetLanguages = "en bg hr cs da nl et fi fr de el hu it lv lt mt pl pt ro sk sl es sv ru uk".split(
  " ",
)

/** What all forms of transducer exports have in common. */
const transducer = {
  adapter: "transducer-onnx",
  kind: "transcription",
  modelTypes: [],
  optional: { config: ["config.json"] },
  precisions: [".int8", "_int8", ""],
  entry: () => ({ options: {}, comments: {} }),
} as const satisfies Partial<Family>

const transducers: ReadonlyArray<Family> = [
  {
    ...transducer,
    what: "a NeMo transducer (onnx-asr)",
    modelTypes: ["nemo-conformer-tdt", "nemo-conformer-rnnt"],
    graphs: { encoder: "encoder-model", decoder: "decoder_joint-model" },
    files: { vocabulary: ["vocab.txt"] },
    isKnownByGraphs: (repository) => has(repository, "vocab.txt"),
    whole: "the export for onnx-asr, with vocab.txt",
    entry: ({ name }) => ({
      options: /parakeet.*v3/i.test(name) ? { languages: parakeetLanguages } : {},
      comments: {},
    }),
  },
  {
    ...transducer,
    what: "a streaming transducer (onnxruntime-genai)",
    graphs: { encoder: "encoder", decoder: "decoder", joiner: "joint" },
    files: { vocabulary: ["vocab.txt"], config: ["genai_config.json"] },
    optional: { processor: ["audio_processor_config.json"] },
    isKnownByGraphs: (repository) => has(repository, "genai_config.json"),
    whole: "the export with genai_config.json and vocab.txt",
  },
  {
    ...transducer,
    what: "a streaming transducer (parakeet-rs)",
    graphs: { encoder: "encoder", decoder: "decoder_joint" },
    files: { vocabulary: ["tokenizer.model", "vocab.txt"] },
    isKnownByGraphs: (repository) => has(repository, "tokenizer.model", "vocab.txt"),
    whole: "the export with tokenizer.model",
  },
  {
    ...transducer,
    what: "a streaming transducer (sherpa-onnx)",
    graphs: { encoder: "encoder", decoder: "decoder", joiner: "joiner" },
    files: { vocabulary: ["tokens.txt"] },
    isKnownByGraphs: (repository) => has(repository, "tokens.txt"),
    whole: "the export for sherpa-onnx, with tokens.txt",
  },
  {
    ...transducer,
    what: "a streaming Zipformer (sherpa-onnx)",
    graphs: { encoder: "encoder-*", decoder: "decoder-*", joiner: "joiner-*" },
    files: { vocabulary: ["tokens.txt"] },
    isKnownByGraphs: (repository) => has(repository, "tokens.txt"),
    whole: "the export for sherpa-onnx, with tokens.txt",
  },
]

/** What all forms of detection exports have in common: one graph, and no configuration beside it. */
const detection = {
  kind: "detection",
  modelTypes: [],
  files: {},
  entry: () => ({ options: {}, comments: {} }),
} as const satisfies Partial<Family>

/** The newest first: a repository holds several versions, of which that for the processor has 8 bits a weight. */
const smartTurns = ["smart-turn-v3.2-cpu", "smart-turn-v3.1-cpu", "smart-turn-v3.0", "smart-turn-v3*"]

const detections: ReadonlyArray<Family> = [
  ...["silero_vad", "silero_vad_16k_op15", "silero_vad_op18_ifless", "silero_vad_half"].map(
    (graph): Family => ({
      ...detection,
      adapter: "silero-vad-onnx",
      what: "Silero VAD",
      graphs: { model: graph },
      precisions: [""],
      isKnownByGraphs: () => true,
    }),
  ),
  {
    ...detection,
    adapter: "silero-vad-onnx",
    what: "Silero VAD",
    graphs: { model: "model" },
    // A graph of this size is no faster in 8 bits.
    precisions: [""],
    isKnownByGraphs: ({ name }) => /silero[-_]?vad/i.test(name),
  },
  ...smartTurns.map(
    (graph): Family => ({
      ...detection,
      adapter: "smart-turn-onnx",
      what: "Smart Turn",
      graphs: { model: graph },
      precisions: [""],
      isKnownByGraphs: () => true,
    }),
  ),
]

export const families: ReadonlyArray<Family> = [
  {
    adapter: "whisper-hf-onnx",
    kind: "transcription",
    what: "Whisper",
    modelTypes: ["whisper"],
    graphs: { encoder: "encoder_model", decoder: "decoder_model_merged" },
    files: {
      config: ["config.json"],
      generation: ["generation_config.json"],
      preprocessor: ["preprocessor_config.json"],
      tokenizer: ["tokenizer.json"],
      tokenizerConfig: ["tokenizer_config.json"],
    },
    entry: () => ({ options: {}, comments: {} }),
  },
  {
    adapter: "cohere-hf-onnx",
    kind: "transcription",
    what: "Cohere Transcribe",
    modelTypes: ["cohere_asr"],
    graphs: { encoder: "encoder_model", decoder: "decoder_model_merged" },
    files: {
      preprocessor: ["preprocessor_config.json"],
      tokenizer: ["tokenizer.json"],
      tokenizerConfig: ["tokenizer_config.json"],
    },
    entry: () => ({
      options: {},
      transcription: { defaultLanguage: "en" },
      comments: {
        transcription: "The model detects no language: this one is meant where a request names none.",
      },
    }),
  },
  {
    adapter: "chatterbox-onnx",
    kind: "speech",
    what: "Chatterbox",
    modelTypes: ["chatterbox"],
    graphs: {
      speechEncoder: "speech_encoder",
      embedTokens: "embed_tokens",
      languageModel: "language_model",
      conditionalDecoder: "conditional_decoder",
    },
    files: {
      tokenizer: ["tokenizer.json"],
      tokenizerConfig: ["tokenizer_config.json"],
      defaultVoice: ["default_voice.wav"],
    },
    optional: { cangjie: ["Cangjie5_TC.json"] },
    precisions: ["_q4", ""],
    isKnownByGraphs: () => true,
    entry: () => ({
      options: {},
      speech: {
        maxCharacters: 850,
        voices: ["default"],
        cloning: true,
        languages: ["en", "fr", "de", "es", "it", "pt", "pl", "ja", "ar", "zh"],
      },
      comments: { speech: "`voice` may be a reference clip. The published model knows more languages." },
    }),
  },
  {
    adapter: "kokoro-onnx",
    kind: "speech",
    what: "Kokoro",
    modelTypes: ["style_text_to_speech_2", "kokoro"],
    graphs: { model: "model" },
    files: { tokenizer: ["tokenizer.json"] },
    precisions: ["", "_quantized"],
    isKnownByGraphs: (repository) => voiceFiles(repository).length > 0,
    entry: (repository) => {
      const { file, names } = voicesOf(repository)
      return {
        options: {},
        files: { voices: file },
        speech: { maxCharacters: 4_096, voices: names, languages: languagesOfVoices(names) },
        comments: {
          "speech.voices":
            "The voices of the repository. `edgewise setup chinese` and `edgewise setup japanese` install what reads `z` and `j`.",
        },
      }
    },
  },
  ...transducers,
  ...detections,
]

// What a catalog entry of each adapter may hold: kind, options and weight files. Data only; imports no native code, so the
// gateway checks a catalog with it before any engine process is started.
import type * as Schema from "effect/Schema"
import { ChatterboxOptions } from "./chatterbox/Options.ts"
import { CloneOptions } from "./clone/Options.ts"
import { CohereOptions } from "./cohere/Options.ts"
import { DetectionOptions } from "./detection/Options.ts"
import {
  FakeEmbeddingOptions,
  FakeOptions,
  FakeSpeechOptions,
  FakeTranscriptionOptions,
} from "./fake/Options.ts"
import { SpeechOptions } from "./kokoro/Options.ts"
import { EmbeddingOptions } from "./llama/embedding/Options.ts"
import { LlamaOptions, pictureCacheBytes, projectors } from "./llama/Options.ts"
import type { Detects } from "./protocol/Detection.ts"
import type { EngineKind } from "./protocol/Engine.ts"
import { keptStreamBytes, TransducerOptions } from "./transducer/Options.ts"
import { WhisperOptions } from "./whisper/Options.ts"

/** A role of `files`: `file` and `folder` must be named, `optional` is a file that may be absent. */
type FileRole = "file" | "folder" | "optional"

export type ModelFormat = "gguf" | "onnx"

/** What of a catalog entry decides about caches. */
interface CachingEntry {
  readonly files: Readonly<Record<string, unknown>>
  readonly options: unknown
}

export interface AdapterFacts {
  readonly kind: EngineKind
  readonly options: Schema.ConstraintDecoder<unknown>
  /** Options of former versions, and what to tell who still uses them. */
  readonly withdrawn?: Readonly<Record<string, string>>
  readonly files: Readonly<Record<string, FileRole>>
  /** Format of the model files among them. Absent: the adapter reads none. */
  readonly format?: ModelFormat
  /**
   * What its CPU threads depend on: `weights` measures each model at its first load, `machine` measures once for all
   * models of the library. Absent: it computes nothing.
   */
  readonly threads?: { readonly measured: "weights" | "machine"; readonly library: EngineLibrary }
  /** What a detection model detects. */
  readonly detects?: Detects
  /** What its caches of requests may take of memory, by the catalog entry. Absent: it has none, or none of its own. */
  readonly cacheBytes?: (entry: CachingEntry) => number
  /** Types of towers that it computes (`clip.projector_type` of its `mmproj` file). Absent: it takes no tower. */
  readonly projectors?: ReadonlyArray<string>
  /**
   * npm packages of its text front end, which may be absent from a node, by ISO-639-1 language; `others` reads the
   * languages that are not named. Absent: it needs none.
   */
  readonly frontEnd?: Readonly<Record<string, string>>
}

/** Packages whose kernels do the work; another version may do it at another speed. */
type EngineLibrary = "node-llama-cpp" | "onnxruntime-node"

const onnx = { measured: "machine", library: "onnxruntime-node" } as const

const whisperSideFiles = {
  config: "file",
  generation: "file",
  preprocessor: "file",
  tokenizer: "file",
  tokenizerConfig: "file",
} as const

const table = {
  "chatterbox-onnx": {
    kind: "speech",
    format: "onnx",
    threads: onnx,
    options: ChatterboxOptions,
    files: {
      speechEncoder: "file",
      embedTokens: "file",
      languageModel: "file",
      conditionalDecoder: "file",
      tokenizer: "file",
      tokenizerConfig: "file",
      defaultVoice: "file",
      cangjie: "optional",
    },
  },
  "cohere-hf-onnx": {
    kind: "transcription",
    format: "onnx",
    threads: onnx,
    options: CohereOptions,
    files: {
      encoder: "file",
      decoder: "file",
      preprocessor: "file",
      tokenizer: "file",
      tokenizerConfig: "file",
    },
  },
  // The adapters without weights read no file; one may be named, so that its bytes count as the model's memory.
  fake: { kind: "text", options: FakeOptions, files: { weights: "optional" } },
  "fake-embedding": { kind: "embedding", options: FakeEmbeddingOptions, files: { weights: "optional" } },
  "fake-speech": { kind: "speech", options: FakeSpeechOptions, files: { weights: "optional" } },
  "fake-transcription": {
    kind: "transcription",
    options: FakeTranscriptionOptions,
    files: { weights: "optional" },
  },
  "kokoro-onnx": {
    kind: "speech",
    format: "onnx",
    threads: onnx,
    options: SpeechOptions,
    files: { model: "file", tokenizer: "file", voices: "folder" },
    frontEnd: {
      en: "phonemizer",
      ja: "lindera-wasm-nodejs-ipadic",
      zh: "pinyin-pro",
      others: "@echogarden/espeak-ng-emscripten",
    },
  },
  "llama-embedding": {
    kind: "embedding",
    format: "gguf",
    threads: { measured: "weights", library: "node-llama-cpp" },
    options: EmbeddingOptions,
    files: { weights: "file" },
  },
  "llama-gguf": {
    kind: "text",
    format: "gguf",
    threads: { measured: "weights", library: "node-llama-cpp" },
    options: LlamaOptions,
    withdrawn: {
      native: "is gone; remove it: llama.cpp is called through its C interface, which has no alternative",
    },
    files: { weights: "file", mmproj: "optional" },
    projectors,
    cacheBytes: ({ files, options }) => (files.mmproj === undefined ? 0 : pictureCacheBytes(options)),
  },
  // No `threads`: a step of Silero takes less than a millisecond and a turn of Smart Turn some tens, both on one thread.
  "silero-vad-onnx": {
    kind: "detection",
    detects: "speech",
    format: "onnx",
    options: DetectionOptions,
    files: { model: "file" },
  },
  "smart-turn-onnx": {
    kind: "detection",
    detects: "turn ends",
    format: "onnx",
    options: DetectionOptions,
    files: { model: "file" },
  },
  "style-clone-onnx": {
    kind: "speech",
    format: "onnx",
    threads: onnx,
    options: CloneOptions,
    files: { model: "file", tokenizer: "file", styleEncoder: "file", defaultVoice: "file" },
    frontEnd: { en: "phonemizer", others: "@echogarden/espeak-ng-emscripten" },
  },
  "transducer-onnx": {
    kind: "transcription",
    format: "onnx",
    threads: onnx,
    options: TransducerOptions,
    files: {
      encoder: "file",
      decoder: "file",
      joiner: "optional",
      vocabulary: "file",
      config: "optional",
      processor: "optional",
    },
    cacheBytes: ({ options }) => keptStreamBytes(options),
  },
  "whisper-hf-onnx": {
    kind: "transcription",
    format: "onnx",
    threads: onnx,
    options: WhisperOptions,
    files: { encoder: "file", decoder: "file", ...whisperSideFiles },
  },
} as const satisfies Readonly<Record<string, AdapterFacts>>

export type AdapterName = keyof typeof table

export type KindOf<N extends AdapterName> = (typeof table)[N]["kind"]

export const adapterFacts: Readonly<Record<string, AdapterFacts>> = table

// The built-in recogniser and its evaluation clips, as tests load them.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import type {
  EngineSpec,
  Outlet,
  Segment,
  TranscribeRequest,
  TranscribeStarted,
} from "#engines/protocol/Engine.ts"

const folder = new URL("../../../../models/whisper-demo-en/", import.meta.url)
const path = (name: string) => fileURLToPath(new URL(name, folder))

export const demoFile = path

export const demoSpec = (options: Record<string, unknown> = {}): EngineSpec => ({
  modelId: "stt-test",
  adapter: "whisper-hf-onnx",
  files: {
    encoder: path("onnx/encoder_model.onnx"),
    decoder: path("onnx/decoder_model_merged.onnx"),
    config: path("config.json"),
    generation: path("generation_config.json"),
    preprocessor: path("preprocessor_config.json"),
    tokenizer: path("tokenizer.json"),
    tokenizerConfig: path("tokenizer_config.json"),
  },
  options,
  threads: 1,
})

interface Clip {
  readonly file: string
  readonly text: string
  readonly segments: ReadonlyArray<{ readonly text: string; readonly start: number; readonly end: number }>
  readonly heard: string
}

export const clips = JSON.parse(readFileSync(path("eval/transcripts.json"), "utf8")) as ReadonlyArray<Clip>

/** 16 kHz mono s16 with a 44-byte header, as all evaluation clips are. */
export const samplesOf = (clip: Clip): Float32Array => {
  const bytes = readFileSync(path(`eval/${clip.file}`))
  const pcm = new Int16Array(bytes.buffer.slice(bytes.byteOffset + 44, bytes.byteOffset + bytes.length))
  return Float32Array.from(pcm, (sample) => sample / 32768)
}

export const request = (samples: Float32Array, more: Partial<TranscribeRequest> = {}): TranscribeRequest => ({
  samples,
  language: "en",
  prompt: "",
  previousTokens: [],
  temperature: 0,
  punctuation: undefined,
  words: false,
  last: true,
  ...more,
})

interface Collector extends Outlet<"transcription"> {
  readonly segments: Array<Segment>
  readonly begun: Array<TranscribeStarted>
}

export const collector = (): Collector => {
  const segments: Array<Segment> = []
  const begun: Array<TranscribeStarted> = []
  return {
    segments,
    begun,
    started: (facts) => void begun.push(facts),
    push: (segment) => void segments.push(segment),
    paused: () => false,
    resumed: Effect.void,
  }
}

export const textOf = (segments: ReadonlyArray<Segment>): string =>
  segments
    .map((segment) => segment.text)
    .join("")
    .trim()

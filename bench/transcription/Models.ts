// The model of the transcription suite as a catalog entry, and the audio of its requests.
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const folder = new URL("../../models/whisper-demo-en/", import.meta.url)
const path = (name: string): string => fileURLToPath(new URL(name, folder))

export const demoFiles = {
  encoder: path("onnx/encoder_model.onnx"),
  decoder: path("onnx/decoder_model_merged.onnx"),
  config: path("config.json"),
  generation: path("generation_config.json"),
  preprocessor: path("preprocessor_config.json"),
  tokenizer: path("tokenizer.json"),
  tokenizerConfig: path("tokenizer_config.json"),
}

/** As in the built-in catalog. */
export const demoOptions = { slots: 4, variableLength: true, pieceSeconds: 8 }

/** The weights that a suite measures on. */
export interface Recogniser {
  readonly files: Readonly<Record<keyof typeof demoFiles, string>>
  readonly options: Readonly<Record<string, unknown>>
  /** Threads of the floor. */
  readonly threads: number
  /** The number in the node's catalog; undefined for the node's own choice. */
  readonly catalogThreads: number | undefined
}

export const demonstration: Recogniser = {
  files: demoFiles,
  options: demoOptions,
  threads: 1,
  catalogThreads: 1,
}

export const model = "demo"

/** As a catalog entry. */
export const entryOf = ({
  catalogThreads,
  files,
  options,
}: Omit<Recogniser, "threads">): Readonly<Record<string, unknown>> => ({
  id: model,
  kind: "transcription",
  adapter: "whisper-hf-onnx",
  ownedBy: "bench",
  created: 1,
  files: Object.fromEntries(Object.entries(files).map(([role, source]) => [role, { source }])),
  options,
  runtime: { load: "start", ...(catalogThreads === undefined ? {} : { threads: catalogThreads }) },
  price: { perMinute: 4_000 },
})

export const endpoint = "/v1/audio/transcriptions"

const rateHz = 16_000
const headerBytes = 44

/** The evaluation clips, 16-bit mono at 16 kHz. */
export const clipNames = (): ReadonlyArray<string> =>
  readdirSync(path("eval/"))
    .filter((name) => name.endsWith(".wav"))
    .sort()
const clipBytes = (name: string): Buffer => readFileSync(path(`eval/${name}`)).subarray(headerBytes)

/** One of them, in [-1, 1]. */
export const clipSamples = (name: string): Float32Array => {
  const bytes = clipBytes(name)
  return Float32Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i) / 32_768)
}

/** All clips one after the other, repeated. */
export const spokenSamples = (seconds: number): Int16Array => {
  const joined = Buffer.concat(clipNames().map(clipBytes))
  const once = new Int16Array(joined.buffer.slice(joined.byteOffset, joined.byteOffset + joined.byteLength))
  return Int16Array.from({ length: seconds * rateHz }, (_, i) => once[i % once.length]!)
}

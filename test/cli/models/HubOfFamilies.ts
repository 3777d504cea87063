// A local hub with a repository of each family in its published layout: the built-in weights where they can answer, generated ones
// elsewhere.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Exit, Scope } from "effect"
import { writeVisionModel } from "../../../bench/sizes/vision/VisionWeights.ts"
import { toyChatterbox } from "../../engines/chatterbox/toyChatterbox.ts"
import { promptOf, scripted, toyCohere } from "../../engines/cohere/support/toyCohere.ts"
import { writeBert } from "../../support/engines/EmbeddingModels.ts"
import { toySilero, toySmartTurn } from "../../support/engines/ToyDetection.ts"
import { uses } from "../../support/groups/Uses.ts"
import { type FakeHub, startHub } from "../../support/servers/FakeHub.ts"

const built = (path: string): string => {
  uses("weights", "a model's weights")
  return fileURLToPath(new URL(`../../../models/${path}`, import.meta.url))
}

export const commit = "0123456789abcdef0123456789abcdef01234567"

export type Files = Record<string, Buffer>

const at = (repo: string, files: Readonly<Record<string, string>>): Files =>
  Object.fromEntries(
    Object.entries(files).map(([path, from]) => [`${repo}/${commit}/${path}`, readFileSync(from)]),
  )

const text = (repo: string, path: string, value: string): Files => ({
  [`${repo}/${commit}/${path}`]: Buffer.from(value),
})

const whisper = "whisper-demo-en"
const whisperFiles = [
  "config.json",
  "generation_config.json",
  "preprocessor_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "added_tokens.json",
  "vocab.json",
  "onnx/encoder_model.onnx",
  "onnx/decoder_model_merged.onnx",
]

/** Built-in weights in the layouts and under the names of the presets `whisper-base`, `kokoro` and `qwen3-0.6b`. */
export const builtInFamilies = (): Files => {
  const voices = readdirSync(built("kokoro-demo/voices")).map((name) => [
    `voices/${name}`,
    built(`kokoro-demo/voices/${name}`),
  ])
  const kokoro = "onnx-community/Kokoro-82M-v1.0-ONNX"
  return {
    ...at("Qwen/Qwen3-0.6B-GGUF", { "Qwen3-0.6B-Q8_0.gguf": built("llama-demo/llama-demo-Q8_0.gguf") }),
    ...text("Qwen/Qwen3-0.6B-GGUF", "README.md", "# Qwen3"),
    ...at(
      "onnx-community/whisper-base",
      Object.fromEntries(whisperFiles.map((path) => [path, built(`${whisper}/${path}`)])),
    ),
    ...at(kokoro, {
      "onnx/model.onnx": built("kokoro-demo/model.onnx"),
      "tokenizer.json": built("kokoro-demo/tokenizer.json"),
      ...Object.fromEntries(voices),
    }),
    ...text(kokoro, "config.json", JSON.stringify({ model_type: "style_text_to_speech_2" })),
  }
}

/** Samples of the clip for which the generated Cohere weights say `cohereText`. */
export const cohereSamples = 16_000
export const cohereText = "Abc."

/** A picture model of the built-in weights, in a repository without a preset. */
const sight = (): Files =>
  at("acme/sight-GGUF", {
    "sight-Q8_0.gguf": built("vision-demo/vision-demo-Q8_0.gguf"),
    "mmproj-F16.gguf": built("vision-demo/mmproj-vision-demo-F16.gguf"),
  })

/** What detects speech and the ends of turns, under the published names; the older version of Smart Turn is no graph. */
const detection = (): Files => ({
  [`onnx-community/silero-vad/${commit}/onnx/model.onnx`]: Buffer.from(toySilero()),
  [`pipecat-ai/smart-turn-v3/${commit}/smart-turn-v3.2-cpu.onnx`]: Buffer.from(toySmartTurn()),
  [`pipecat-ai/smart-turn-v3/${commit}/smart-turn-v3.0.onnx`]: Buffer.from("old"),
})

interface GeneratedFamilies {
  readonly files: Files
  /** Files of the generated models on this machine, by repository and role. */
  readonly folder: string
  readonly chatterbox: Readonly<Record<string, string>>
  readonly stop: () => Promise<void>
}

const generateFamilies = async (): Promise<GeneratedFamilies> => {
  const scope = Scope.makeUnsafe()
  const folder = mkdtempSync(join(tmpdir(), "edgewise-families-"))
  const chatterbox = await Effect.runPromise(Effect.provideService(toyChatterbox(), Scope.Scope, scope))
  const cohere = toyCohere({
    seed: 5,
    patch: scripted(promptOf("en"), ["▁A", "b", "c", "."], cohereSamples),
  })
  for (const name of ["smol", "qwen"]) mkdirSync(join(folder, name))
  const smol = await writeVisionModel(join(folder, "smol"), "toy-idefics3")
  const qwen = await writeVisionModel(join(folder, "qwen"), "toy-qwen")
  const bert = await writeBert(folder)
  const chatter = "onnx-community/chatterbox-multilingual-ONNX"
  const transcribe = "onnx-community/cohere-transcribe-03-2026-ONNX"
  const files = {
    ...at(chatter, {
      "onnx/speech_encoder.onnx": chatterbox.speechEncoder,
      "onnx/embed_tokens.onnx": chatterbox.embedTokens,
      "onnx/language_model.onnx": chatterbox.languageModel,
      "onnx/conditional_decoder.onnx": chatterbox.conditionalDecoder,
      "tokenizer.json": chatterbox.tokenizer,
      "tokenizer_config.json": chatterbox.tokenizerConfig,
      "default_voice.wav": chatterbox.defaultVoice,
      "Cangjie5_TC.json": chatterbox.cangjie,
    }),
    ...at(transcribe, {
      "onnx/encoder_model.onnx": cohere.spec.files.encoder!,
      "onnx/decoder_model_merged.onnx": cohere.spec.files.decoder!,
      "preprocessor_config.json": cohere.spec.files.preprocessor!,
      "tokenizer.json": cohere.spec.files.tokenizer!,
      "tokenizer_config.json": cohere.spec.files.tokenizerConfig!,
    }),
    ...text(transcribe, "config.json", JSON.stringify({ model_type: "cohere_asr" })),
    ...at("ggml-org/SmolVLM-256M-Instruct-GGUF", {
      "SmolVLM-256M-Instruct-Q8_0.gguf": smol.weights,
      "mmproj-SmolVLM-256M-Instruct-Q8_0.gguf": smol.mmproj,
    }),
    ...at("Qwen/Qwen3-VL-2B-Instruct-GGUF", {
      "Qwen3VL-2B-Instruct-Q4_K_M.gguf": qwen.weights,
      "mmproj-Qwen3VL-2B-Instruct-Q8_0.gguf": qwen.mmproj,
    }),
    ...at("Qwen/Qwen3-Embedding-0.6B-GGUF", { "Qwen3-Embedding-0.6B-Q8_0.gguf": bert }),
  }
  return {
    files,
    folder,
    chatterbox,
    stop: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface HubOfFamilies {
  readonly hub: FakeHub
  readonly generated: GeneratedFamilies
  readonly stop: () => Promise<void>
}

export const startHubOfFamilies = async (): Promise<HubOfFamilies> => {
  const generated = await generateFamilies()
  const hub = await startHub({ ...builtInFamilies(), ...sight(), ...detection(), ...generated.files })
  return {
    hub,
    generated,
    stop: async () => {
      await hub.stop()
      await generated.stop()
    },
  }
}

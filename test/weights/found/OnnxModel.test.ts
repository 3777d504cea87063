// Which adapter reads an ONNX export, and which of its files.
import { Effect, Result } from "effect"
import { describe, expect, it } from "vitest"
import { findModel } from "#weights/found/FindModel.ts"
import type { FoundModel } from "#weights/found/FoundModel.ts"
import type { Repository } from "#weights/found/Repository.ts"

const repository = (paths: ReadonlyArray<string>, config: object | undefined): Repository => ({
  source: "hf:a/b",
  name: "b",
  owner: "a",
  licence: "mit",
  files: [...(config === undefined ? [] : ["config.json"]), ...paths].map((path) => ({
    path,
    sizeBytes: 10,
    sha256: undefined,
  })),
  sourceOf: (path) => `hf:a/b@0123456/${path}`,
  readText: () => Effect.succeed(JSON.stringify(config)),
  gguf: () => Effect.die(new Error("no GGUF file here")),
})

const found = (
  paths: ReadonlyArray<string>,
  config?: object,
  precisions?: ReadonlyArray<string>,
  file?: string,
) =>
  Effect.runSync(Effect.result(findModel(repository(paths, config), { memoryBytes: 1e9, precisions, file })))

const right = (...args: Parameters<typeof found>): FoundModel => {
  const result = found(...args)
  if (Result.isFailure(result)) throw result.failure
  return result.success
}

const sources = ({ files }: FoundModel) =>
  Object.fromEntries(
    Object.entries(files).map(([role, { source }]) => [role, source.replace("hf:a/b@0123456/", "")]),
  )

const side = ["generation_config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json"]
const whisper = (...graphs: ReadonlyArray<string>) => [...side, ...graphs.map((name) => `onnx/${name}.onnx`)]

describe("Whisper", () => {
  it("has eight bits if there are, else full precision, each graph by itself", () => {
    const all = whisper(
      "encoder_model",
      "encoder_model_quantized",
      "encoder_model_fp16",
      "decoder_model_merged",
      "decoder_model_merged_q4",
    )
    expect(sources(right(all, { model_type: "whisper" }))).toMatchObject({
      encoder: "onnx/encoder_model_quantized.onnx",
      decoder: "onnx/decoder_model_merged.onnx",
      generation: "generation_config.json",
    })
    expect(sources(right(all, { model_type: "whisper" }, ["_q4"]))).toMatchObject({
      encoder: "onnx/encoder_model.onnx",
      decoder: "onnx/decoder_model_merged_q4.onnx",
    })
  })

  it("has the precision that was named, as far as there are graphs of it", () => {
    const paths = whisper(
      "encoder_model",
      "encoder_model_quantized",
      "decoder_model_merged",
      "decoder_model_merged_q4",
    )
    const named = (file: string) => right(paths, { model_type: "whisper" }, undefined, file)
    expect(sources(named("fp32"))).toMatchObject({ encoder: "onnx/encoder_model.onnx" })
    expect(sources(named("int8"))).toMatchObject({ encoder: "onnx/encoder_model_quantized.onnx" })
    expect(sources(named("q4"))).toMatchObject({
      encoder: "onnx/encoder_model.onnx",
      decoder: "onnx/decoder_model_merged_q4.onnx",
    })
    expect(found(paths, { model_type: "whisper" }, undefined, "fp16")).toMatchObject({
      failure: {
        message: "hf:a/b: has no graphs of the precision fp16; --file may be fp32, int8, q8, quantized, q4",
      },
    })
  })

  it("has the external data of a large graph beside it", () => {
    const large = [
      ...whisper("encoder_model", "decoder_model_merged"),
      "onnx/encoder_model.onnx_data",
      "onnx/encoder_model.onnx_data_1",
    ]
    expect(sources(right(large, { model_type: "whisper" }))).toMatchObject({
      encoderData: "onnx/encoder_model.onnx_data",
      encoderData2: "onnx/encoder_model.onnx_data_1",
    })
  })
})

it("Cohere Transcribe has the same graphs and another type", () => {
  const paths = whisper("encoder_model_quantized", "decoder_model_merged_quantized")
  const model = right(paths, { model_type: "cohere_asr" })
  expect([model.adapter, model.transcription]).toEqual(["cohere-hf-onnx", { defaultLanguage: "en" }])
})

describe("Kokoro", () => {
  const paths = [
    "onnx/model.onnx",
    "onnx/model_quantized.onnx",
    "tokenizer.json",
    "voices/af_heart.bin",
    "voices/jf_alpha.bin",
    "voices/bm_fable.bin",
    "voices/other.bin",
  ]

  it("has its voices as files of a folder", () => {
    const model = right(paths, { model_type: "style_text_to_speech_2" })
    expect(model.files.model?.source).toContain("onnx/model.onnx")
    expect(model.files.voices).toEqual({
      source: "hf:a/b@0123456/voices",
      files: {
        "af_heart.bin": { sizeBytes: 10 },
        "jf_alpha.bin": { sizeBytes: 10 },
        "bm_fable.bin": { sizeBytes: 10 },
      },
    })
    expect(model.speech).toMatchObject({
      voices: ["af_heart", "jf_alpha", "bm_fable"],
      languages: ["en", "ja"],
    })
  })

  it("is known by its voices where no type is given, and another model of its type by their lack", () => {
    expect(right(paths).adapter).toBe("kokoro-onnx")
    const kitten = ["onnx/model.onnx", "tokenizer.json", "voices/expr-voice-2-f.bin"]
    expect(found(kitten, { model_type: "style_text_to_speech_2" })).toMatchObject({
      failure: { message: expect.stringContaining("has no voices (voices/af_….bin)") },
    })
  })
})

describe("transducers", () => {
  const graphs = (ending: string, ...names: ReadonlyArray<string>) =>
    names.map((name) => `${name}${ending}.onnx`)
  const files = (paths: ReadonlyArray<string>, config?: object, file?: string) => {
    const model = right(paths, config, undefined, file)
    expect(model.adapter).toBe("transducer-onnx")
    return sources(model)
  }

  it("for onnx-asr have eight bits, and the data beside a graph of full precision", () => {
    const names = ["encoder-model", "decoder_joint-model"]
    const paths = [
      "vocab.txt",
      "nemo128.onnx",
      ...graphs("", ...names),
      "encoder-model.onnx.data",
      ...graphs(".int8", ...names),
    ]
    const type = { model_type: "nemo-conformer-tdt" }
    expect(files(paths, type)).toEqual({
      encoder: "encoder-model.int8.onnx",
      decoder: "decoder_joint-model.int8.onnx",
      vocabulary: "vocab.txt",
      config: "config.json",
    })
    expect(files(paths, type, "fp32")).toMatchObject({
      encoder: "encoder-model.onnx",
      encoderData: "encoder-model.onnx.data",
    })
    expect(found(paths.slice(1), type)).toMatchObject({
      failure: { message: expect.stringContaining("has no vocab.txt; choose the export for onnx-asr") },
    })
  })

  it("for onnxruntime-genai, parakeet-rs and sherpa-onnx are known by their files", () => {
    expect(
      files([
        "genai_config.json",
        "audio_processor_config.json",
        "vocab.txt",
        ...graphs("", "encoder", "decoder", "joint"),
        "encoder.onnx.data",
      ]),
    ).toEqual({
      encoder: "encoder.onnx",
      encoderData: "encoder.onnx.data",
      decoder: "decoder.onnx",
      joiner: "joint.onnx",
      vocabulary: "vocab.txt",
      config: "genai_config.json",
      processor: "audio_processor_config.json",
    })
    expect(files(["tokenizer.model", ...graphs("", "encoder", "decoder_joint")], {})).toEqual({
      encoder: "encoder.onnx",
      decoder: "decoder_joint.onnx",
      vocabulary: "tokenizer.model",
      config: "config.json",
    })
    expect(files(["tokens.txt", ...graphs(".int8", "encoder", "decoder", "joiner")])).toEqual({
      encoder: "encoder.int8.onnx",
      decoder: "decoder.int8.onnx",
      joiner: "joiner.int8.onnx",
      vocabulary: "tokens.txt",
    })
  })

  it("of one export have one name, where a repository has several", () => {
    const of = (ending: string, left: number) =>
      graphs(`-epoch-99-avg-1-chunk-16-left-${left}${ending}`, "encoder", "decoder", "joiner")
    const paths = [
      "tokens.txt",
      "encoder-epoch-1-chunk-16-left-32.onnx",
      ...of(".int8", 128),
      ...of("", 128),
      ...of("", 64),
    ]
    expect(files(paths)).toEqual({
      encoder: "encoder-epoch-99-avg-1-chunk-16-left-128.int8.onnx",
      decoder: "decoder-epoch-99-avg-1-chunk-16-left-128.int8.onnx",
      joiner: "joiner-epoch-99-avg-1-chunk-16-left-128.int8.onnx",
      vocabulary: "tokens.txt",
    })
    expect(files(paths, undefined, "fp32").encoder).toBe("encoder-epoch-99-avg-1-chunk-16-left-128.onnx")
  })
})

describe("detection", () => {
  const files = (paths: ReadonlyArray<string>, name = "b") => {
    const model = Effect.runSync(
      findModel(
        { ...repository(paths, undefined), name },
        { memoryBytes: 1e9, precisions: undefined, file: undefined },
      ),
    )
    expect(model.kind).toBe("detection")
    return [model.adapter, sources(model).model]
  }

  it("of speech is known by the published name of its graph, or by the repository's", () => {
    const all = ["silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_half.onnx"]
    expect(files(all)).toEqual(["silero-vad-onnx", "silero_vad.onnx"])
    expect(files(all.slice(1))).toEqual(["silero-vad-onnx", "silero_vad_16k_op15.onnx"])
    const community = ["onnx/model.onnx", "onnx/model_quantized.onnx", "onnx/model_fp16.onnx"]
    expect(files(community, "silero-vad")).toEqual(["silero-vad-onnx", "onnx/model.onnx"])
    expect(Result.isFailure(found(community))).toBe(true)
  })

  it("of the ends of turns is the newest version for the processor", () => {
    const versions = ["v3.0", "v3.1-cpu", "v3.1-gpu", "v3.2-cpu", "v3.2-gpu"]
    const graphs = versions.map((version) => `smart-turn-${version}.onnx`)
    expect(files(graphs)).toEqual(["smart-turn-onnx", "smart-turn-v3.2-cpu.onnx"])
    expect(files(graphs.slice(0, 1))).toEqual(["smart-turn-onnx", "smart-turn-v3.0.onnx"])
    expect(files(["smart-turn-v3.9-cpu.onnx"])).toEqual(["smart-turn-onnx", "smart-turn-v3.9-cpu.onnx"])
  })
})

it("Chatterbox is known by its graphs", () => {
  const graphs = [
    "speech_encoder",
    "embed_tokens",
    "language_model",
    "language_model_q4",
    "conditional_decoder",
  ]
  const model = right([
    ...graphs.map((name) => `onnx/${name}.onnx`),
    "tokenizer.json",
    "tokenizer_config.json",
    "default_voice.wav",
  ])
  expect([model.adapter, model.files.languageModel?.source, model.files.cangjie]).toEqual([
    "chatterbox-onnx",
    "hf:a/b@0123456/onnx/language_model_q4.onnx",
    undefined,
  ])
})

it.each([
  [["model.safetensors"], { model_type: "llama" }, "has safetensors"],
  [["README.md"], undefined, "has no weights that an adapter reads"],
  [["onnx/model.onnx"], { model_type: "bert" }, "is an ONNX export of bert, which no adapter reads"],
  [["onnx/model.onnx"], undefined, "is an ONNX export of an unnamed type"],
  [["onnx/encoder_model.onnx"], { model_type: "whisper" }, "has no decoder_model_merged.onnx"],
])("%j with %j is refused: %s", (paths, config, problem) => {
  expect(found(paths, config)).toMatchObject({ failure: { message: expect.stringContaining(problem) } })
})

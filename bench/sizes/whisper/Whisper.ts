// Random weights of the shape of a published Whisper model, in the files of a published export. Generated once and cached.
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { cachedFolder } from "../Cache.ts"
import { writeModel } from "../onnx/ModelFile.ts"
import { decoderGraph } from "./Decoder.ts"
import { encoderGraph } from "./Encoder.ts"
import { scriptOf } from "./Script.ts"
import { whisperShapes } from "./Shapes.ts"
import { sideFiles } from "./SideFiles.ts"
import { vocabularyOf } from "./Vocabulary.ts"

/** Increase it with every change that makes other bytes of the same shape. */
const recipeVersion = 2

interface Parts {
  readonly shape: keyof typeof whisperShapes
  readonly precision: "fp32" | "int8"
}

const parts = {
  base: { shape: "base", precision: "fp32" },
  "base-int8": { shape: "base", precision: "int8" },
  small: { shape: "small", precision: "fp32" },
  "small-int8": { shape: "small", precision: "int8" },
  turbo: { shape: "turbo", precision: "fp32" },
  "turbo-int8": { shape: "turbo", precision: "int8" },
} as const satisfies Readonly<Record<string, Parts>>

/** Models that can be generated. Those without a suffix have 32 bits a value. */
export type WhisperSize = keyof typeof parts

export const whisperSizes: readonly [WhisperSize, ...ReadonlyArray<WhisperSize>] = [
  "base",
  "base-int8",
  "small",
  "small-int8",
  "turbo",
  "turbo-int8",
]

/**
 * Publishers name the precision `int8` "quantized": weights are unsigned bytes in a graph with convolutions and signed bytes
 * in others.
 */
const forms = {
  fp32: { suffix: "", encoder: "float32", decoder: "float32" },
  int8: { suffix: "_quantized", encoder: "uint8", decoder: "int8" },
} as const

/** The folder of the weights. Missing ones are generated first, which takes minutes for the largest. */
export const whisperWeights = (size: WhisperSize): Promise<string> => {
  const { precision, shape: name } = parts[size]
  const shape = whisperShapes[name]
  const { decoder, encoder, suffix } = forms[precision]
  return cachedFolder({
    name: `whisper-${size}`,
    recipe: { recipeVersion, shape, precision },
    fill: async (folder) => {
      const vocabulary = vocabularyOf(shape)
      const script = scriptOf(vocabulary)
      const onnx = join(folder, "onnx")
      await mkdir(onnx)
      for (const [file, content] of Object.entries(sideFiles(shape, vocabulary))) {
        await writeFile(join(folder, file), JSON.stringify(content, undefined, 1))
      }
      await writeModel(join(onnx, `encoder_model${suffix}.onnx`), encoderGraph(shape, encoder))
      const decoderModel = decoderGraph(shape, vocabulary.size, script, decoder)
      await writeModel(join(onnx, `decoder_model_merged${suffix}.onnx`), decoderModel)
    },
  })
}

/** The paths of these weights, by their roles in a catalog entry. */
export const whisperFiles = async (size: WhisperSize) => {
  const folder = await whisperWeights(size)
  const { suffix } = forms[parts[size].precision]
  return {
    encoder: join(folder, `onnx/encoder_model${suffix}.onnx`),
    decoder: join(folder, `onnx/decoder_model_merged${suffix}.onnx`),
    config: join(folder, "config.json"),
    generation: join(folder, "generation_config.json"),
    preprocessor: join(folder, "preprocessor_config.json"),
    tokenizer: join(folder, "tokenizer.json"),
    tokenizerConfig: join(folder, "tokenizer_config.json"),
  }
}

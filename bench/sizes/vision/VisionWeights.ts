// Generated weights of models that take pictures: a text model and its tower (mmproj), GGUF files with random values. The same
// bytes on every machine, so that recorded answers of toys (bench/pictures) can be compared.
import { join } from "node:path"
import { cachedFolder } from "../Cache.ts"
import { RandomWords } from "../RandomWords.ts"
import { type GgufMetadata, writeGguf } from "../text/Gguf.ts"
import { writeTextModel } from "../text/TextWeights.ts"
import { readWordList, smallVocabulary, wordsIn } from "../text/Vocabulary.ts"
import {
  towerMetadata,
  towerTensors,
  type VisionShape,
  type VisionSize,
  visionShapes,
} from "./TowerShapes.ts"

export const visionSizes = Object.keys(visionShapes) as unknown as readonly [
  VisionSize,
  ...ReadonlyArray<VisionSize>,
]

/** Increase it with every change that makes other bytes of the same shape. */
const recipeVersion = 1

const seed = 23

/** Words with a token of their own. A guess: enough for questions. */
const wordCount = 400

/** Most tiles of one side that have a marker of their own. */
const mostTiles = 4

/** What tells a text model where a picture is, in all families. */
const pictureMarkers: ReadonlyArray<string> = [
  "<fake_token_around_image>",
  "<global-img>",
  ...Array.from({ length: mostTiles }, (_, line) =>
    Array.from({ length: mostTiles }, (_none, column) => `<row_${line + 1}_col_${column + 1}>`),
  ).flat(),
  "<|vision_start|>",
  "<|vision_end|>",
]

export const visionVocabulary = () =>
  smallVocabulary(wordsIn(readWordList()).slice(0, wordCount), [
    "<|endoftext|>",
    "<|im_end|>",
    "<|im_start|>",
    ...pictureMarkers,
  ])

/** Pairs of values that are rotated by time, line, column and nothing. */
const mropeMetadata = ({ text, tower }: VisionShape): GgufMetadata => {
  if (text.architecture !== "qwen3vl") return {}
  const pairs = text.headWidth / 2
  const spatial = Math.floor((pairs * 3) / 8)
  return {
    "qwen3vl.rope.dimension_sections": {
      type: "int32s",
      value: [pairs - 2 * spatial, spatial, spatial, 0],
    },
    "qwen3vl.n_deepstack_layers": { type: "uint32", value: tower.deepstack?.length ?? 0 },
  }
}

export interface VisionFiles {
  readonly weights: string
  readonly mmproj: string
}

const filesIn = (folder: string): VisionFiles => ({
  weights: join(folder, "text.gguf"),
  mmproj: join(folder, "mmproj.gguf"),
})

/** Writes the model and its tower into a folder. */
export const writeVisionModel = async (folder: string, size: VisionSize): Promise<VisionFiles> => {
  const shape: VisionShape = visionShapes[size]
  const files = filesIn(folder)
  await writeTextModel(
    files.weights,
    { name: size, shape: shape.text, quantisation: "q8_0", metadata: mropeMetadata(shape) },
    visionVocabulary(),
  )
  await writeGguf(files.mmproj, {
    metadata: towerMetadata(size, shape.tower),
    tensors: towerTensors(shape.tower),
    random: new RandomWords(seed),
  })
  return files
}

/** The paths of the weights. Missing ones are generated first. */
export const visionWeights = async (size: VisionSize): Promise<VisionFiles> =>
  filesIn(
    await cachedFolder({
      name: `vision-${size}`,
      recipe: { recipeVersion, seed, shape: visionShapes[size], words: readWordList(), pictureMarkers },
      fill: async (path) => {
        await writeVisionModel(path, size)
      },
    }),
  )

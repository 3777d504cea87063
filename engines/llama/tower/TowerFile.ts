// What an mmproj GGUF file says about its tower: the projector's type, sizes, normalisation, and the shapes of its tensors.
// Keys and names of tensors are those that llama.cpp's converters write.
import { readGgufFileInfo } from "node-llama-cpp"
import { projectors } from "../Options.ts"
import { type Activation, type Shape, shapeOf, UnfitTensors } from "./Graph.ts"

/** How towers of a family become rows of the text model, by `clip.projector_type`. */
export type Projector = (typeof projectors)[number]

export interface TowerFile {
  readonly projector: Projector
  /** Values of a patch inside the tower. */
  readonly width: number
  readonly heads: number
  readonly blocks: number
  readonly feedForward: number
  /** Pixels of the side of a patch. */
  readonly patch: number
  /** Pixels of the side of a picture, or of a tile, that the tower was trained with. */
  readonly size: number
  /** Patches of one side that become one row. */
  readonly merge: number
  /** Pixels to which the longer side of a picture is scaled before it is cut into tiles; undefined in older files. */
  readonly longest: number | undefined
  readonly epsilon: number
  readonly activation: Activation
  /** Subtracted from red, green and blue, which are 0 to 1. */
  readonly mean: ReadonlyArray<number>
  /** Divides them afterwards. */
  readonly deviation: ReadonlyArray<number>
  readonly shapes: ReadonlyMap<string, Shape>
}

/** An mmproj file that cannot be used; the message follows the file's name. */
export class UnusableTower extends Error {}

type Metadata = Readonly<Record<string, unknown>>

const isMetadata = (value: unknown): value is Metadata => typeof value === "object" && value !== null

const found = (metadata: unknown, key: string): unknown =>
  key.split(".").reduce((at: unknown, name) => (isMetadata(at) ? at[name] : undefined), metadata)

/** Far above every published tower. */
const largest = 1 << 20

const whole = (metadata: unknown, key: string): number | undefined => {
  const value = found(metadata, key)
  if (value === undefined) return undefined
  const number = Number(value)
  if (!Number.isInteger(number) || number < 1 || number > largest)
    throw new UnusableTower(`has the value ${String(value).slice(0, 40)} for ${key}`)
  return number
}

const needed = <A>(value: A | undefined, key: string): A => {
  if (value === undefined) throw new UnusableTower(`has no ${key}`)
  return value
}

const colours = (metadata: unknown, key: string): ReadonlyArray<number> => {
  const value = needed(found(metadata, key), key)
  const numbers = Array.isArray(value) ? value.map(Number) : []
  if (numbers.length !== 3 || !numbers.every(Number.isFinite))
    throw new UnusableTower(`needs three numbers for ${key}`)
  return numbers
}

const isProjector = (name: unknown): name is Projector => projectors.some((one) => one === name)

/** `GGML_TYPE_BF16` and above are no formats that ggml's patches can be cut with; 0 and 1 are. */
const mostPatchType = 1

/** @throws UnusableTower */
export const readTowerFile = async (path: string): Promise<TowerFile> => {
  const { fullTensorInfo = [], metadata } = await readGgufFileInfo(path, {
    sourceType: "filesystem",
    logWarnings: false,
  })
  const number = (key: string) => needed(whole(metadata, key), key)
  if (found(metadata, "general.architecture") !== "clip")
    throw new UnusableTower("is no mmproj file: its general.architecture is not clip")
  if (found(metadata, "clip.has_vision_encoder") !== true)
    throw new UnusableTower("has no tower for pictures (clip.has_vision_encoder)")
  const projector = found(metadata, "clip.projector_type") ?? found(metadata, "clip.vision.projector_type")
  if (!isProjector(projector))
    throw new UnusableTower(
      `has the projector type ${String(projector).slice(0, 40)}; supported are ${projectors.join(", ")}`,
    )
  const epsilon = Number(found(metadata, "clip.vision.attention.layer_norm_epsilon"))
  const file: TowerFile = {
    projector,
    width: number("clip.vision.embedding_length"),
    heads: number("clip.vision.attention.head_count"),
    blocks: number("clip.vision.block_count"),
    feedForward: number("clip.vision.feed_forward_length"),
    patch: number("clip.vision.patch_size"),
    size: number("clip.vision.image_size"),
    merge:
      whole(metadata, "clip.vision.spatial_merge_size") ??
      whole(metadata, "clip.vision.projector.scale_factor") ??
      (projector === "qwen3vl_merger" ? 2 : 1),
    longest: whole(metadata, "clip.vision.preproc_image_size"),
    epsilon: Number.isFinite(epsilon) ? epsilon : 1e-6,
    activation:
      found(metadata, "clip.use_gelu") === true
        ? "gelu"
        : found(metadata, "clip.use_silu") === true
          ? "silu"
          : "gelu_quick",
    mean: colours(metadata, "clip.vision.image_mean"),
    deviation: colours(metadata, "clip.vision.image_std"),
    shapes: new Map(fullTensorInfo.map(({ dimensions, name }) => [name, shapeOf(dimensions.map(Number))])),
  }
  const { heads, merge, patch, size, width } = file
  if (width % heads !== 0 || (projector === "qwen3vl_merger" && (width / heads) % 4 !== 0))
    throw new UnusableTower(`has ${heads} heads for a width of ${width}`)
  if (size % (patch * merge) !== 0 || size > 4_096)
    throw new UnusableTower(`has an image_size of ${size} for patches of ${patch} merged by ${merge}`)
  if (projector === "qwen3vl_merger" && merge !== 2)
    throw new UnusableTower(`has a spatial_merge_size of ${merge}; 2 is supported`)
  const kernels = fullTensorInfo.filter(({ name }) => name.startsWith("v.patch_embd.weight"))
  if (kernels.some(({ ggmlType }) => Number(ggmlType) > mostPatchType))
    throw new UnusableTower("has a v.patch_embd.weight that is neither F32 nor F16")
  return file
}

/** The shape of a tensor that the tower cannot do without. */
export const shapeIn = ({ shapes }: TowerFile, name: string): Shape => {
  const shape = shapes.get(name)
  if (shape === undefined) throw new UnfitTensors(`there is no tensor ${name}`)
  return shape
}

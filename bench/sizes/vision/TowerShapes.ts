// The sizes of the generated towers, and the tensors that each consists of, with the names of llama.cpp's converters. Pure.
import type { GgufMetadata } from "../text/Gguf.ts"
import type { Tensor, TextShape } from "../text/Shapes.ts"

export interface TowerShape {
  readonly projector: "idefics3" | "mlp" | "qwen3vl_merger"
  /** Pixels of the side of a picture, or of a tile. */
  readonly size: number
  /** Pixels of the side of a patch. */
  readonly patch: number
  readonly width: number
  readonly heads: number
  readonly blocks: number
  readonly feedForward: number
  /** Patches of one side that become one row. */
  readonly merge: number
  /** `idefics3` only: pixels of the longer side of a picture before it is cut into tiles. */
  readonly longest?: number
  /** `qwen3vl_merger` only: the blocks whose result is a part of each row. */
  readonly deepstack?: ReadonlyArray<number>
  /** Values of a row of the text model. */
  readonly textWidth: number
  /** Of the large matrices. */
  readonly type: "f32" | "q8_0"
}

/** A text model with its tower. */
export interface VisionShape {
  readonly text: TextShape
  readonly tower: TowerShape
}

const toyText: TextShape = {
  architecture: "llama",
  width: 64,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headWidth: 16,
  feedForward: 128,
}

const toyTower = {
  size: 64,
  patch: 16,
  width: 64,
  heads: 4,
  blocks: 3,
  feedForward: 128,
  merge: 2,
  textWidth: 64,
  type: "f32",
} as const

export const visionShapes = {
  "toy-mlp": { text: toyText, tower: { ...toyTower, projector: "mlp", merge: 1 } },
  "toy-idefics3": { text: toyText, tower: { ...toyTower, projector: "idefics3", longest: 160 } },
  "toy-qwen": {
    text: { ...toyText, architecture: "qwen3vl", layers: 3 },
    tower: { ...toyTower, projector: "qwen3vl_merger", deepstack: [0, 1] },
  },
  /** The dimensions of SmolVLM 256M. */
  "smol-256m": {
    text: {
      architecture: "llama",
      width: 576,
      layers: 30,
      heads: 9,
      keyValueHeads: 3,
      headWidth: 64,
      feedForward: 1536,
    },
    tower: {
      projector: "idefics3",
      size: 512,
      patch: 16,
      width: 768,
      heads: 12,
      blocks: 12,
      feedForward: 3072,
      merge: 4,
      longest: 2048,
      textWidth: 576,
      type: "q8_0",
    },
  },
} as const satisfies Readonly<Record<string, VisionShape>>

export type VisionSize = keyof typeof visionShapes

const ones = (name: string, width: number): Tensor => ({ name, shape: [width], type: "f32", deviation: 0 })

/** Positions, which tell patches apart as much as their content does. */
const positionDeviation = 0.5
const biasDeviation = 0.05

const bias = (name: string, width: number): Tensor => ({
  name: `${name}.bias`,
  shape: [width],
  type: "f32",
  deviation: biasDeviation,
})

const norm = (name: string, width: number): ReadonlyArray<Tensor> => [
  ones(`${name}.weight`, width),
  bias(name, width),
]

export const towerTensors = (shape: TowerShape): ReadonlyArray<Tensor> => {
  const { blocks, deepstack = [], feedForward, merge, patch, projector, size, textWidth, type, width } = shape
  const matrix = (name: string, from: number, to: number): Tensor => ({
    name: `${name}.weight`,
    shape: [from, to],
    type,
    deviation: 1 / Math.sqrt(from),
  })
  const linear = (name: string, from: number, to: number) => [matrix(name, from, to), bias(name, to)]
  const kernel = (name: string): Tensor => ({
    name,
    shape: [patch, patch, 3, width],
    type: "f32",
    deviation: 1 / Math.sqrt(patch * patch * 3),
  })
  const isQwen = projector === "qwen3vl_merger"
  const block = (at: number) => {
    const name = `v.blk.${at}`
    const queries = isQwen
      ? linear(`${name}.attn_qkv`, width, 3 * width)
      : ["attn_q", "attn_k", "attn_v"].flatMap((one) => linear(`${name}.${one}`, width, width))
    return [
      ...norm(`${name}.ln1`, width),
      ...queries,
      ...linear(`${name}.attn_out`, width, width),
      ...norm(`${name}.ln2`, width),
      ...linear(`${name}.ffn_up`, width, feedForward),
      ...linear(`${name}.ffn_down`, feedForward, width),
    ]
  }
  const square = width * merge * merge
  const projection = {
    idefics3: () => [matrix("mm.model.fc", square, textWidth)],
    mlp: () => [...linear("mm.0", width, textWidth), ...linear("mm.2", textWidth, textWidth)],
    qwen3vl_merger: () => [
      ...linear("mm.0", square, square),
      ...linear("mm.2", square, textWidth),
      ...deepstack.flatMap((at) => [
        ...norm(`v.deepstack.${at}.norm`, square),
        ...linear(`v.deepstack.${at}.fc1`, square, square),
        ...linear(`v.deepstack.${at}.fc2`, square, textWidth),
      ]),
    ],
  }[projector]()
  return [
    kernel("v.patch_embd.weight"),
    ...(isQwen ? [kernel("v.patch_embd.weight.1")] : []),
    bias("v.patch_embd", width),
    {
      name: "v.position_embd.weight",
      shape: [width, (size / patch) ** 2],
      type: "f32",
      deviation: positionDeviation,
    },
    ...Array.from({ length: blocks }, (_, at) => block(at)).flat(),
    ...norm("v.post_ln", width),
    ...projection,
  ]
}

export const towerMetadata = (name: string, shape: TowerShape): GgufMetadata => {
  const uint32 = (value: number) => ({ type: "uint32", value }) as const
  const text = (value: string) => ({ type: "string", value }) as const
  const half = { type: "float32s", value: [0.5, 0.5, 0.5] } as const
  const { longest, projector } = shape
  return {
    "general.architecture": text("clip"),
    "general.type": text("mmproj"),
    "general.name": text(`edgewise-bench-${name}`),
    "general.file_type": uint32(0),
    "clip.has_vision_encoder": { type: "bool", value: true },
    "clip.projector_type": text(projector),
    "clip.use_gelu": { type: "bool", value: true },
    "clip.vision.image_size": uint32(shape.size),
    "clip.vision.patch_size": uint32(shape.patch),
    "clip.vision.embedding_length": uint32(shape.width),
    "clip.vision.feed_forward_length": uint32(shape.feedForward),
    "clip.vision.block_count": uint32(shape.blocks),
    "clip.vision.attention.head_count": uint32(shape.heads),
    "clip.vision.projection_dim": uint32(shape.textWidth),
    "clip.vision.attention.layer_norm_epsilon": { type: "float32", value: 1e-6 },
    "clip.vision.image_mean": half,
    "clip.vision.image_std": half,
    ...(projector === "idefics3" ? { "clip.vision.projector.scale_factor": uint32(shape.merge) } : {}),
    ...(projector === "qwen3vl_merger" ? { "clip.vision.spatial_merge_size": uint32(shape.merge) } : {}),
    ...(longest === undefined ? {} : { "clip.vision.preproc_image_size": uint32(longest) }),
  }
}

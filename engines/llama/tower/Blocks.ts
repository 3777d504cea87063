// The parts that the towers of all families share: patches of a picture, and blocks of attention and feed-forward layers.
import type { Graph, Tensor } from "./Graph.ts"
import type { TowerFile } from "./TowerFile.ts"

/** The graph that is built, the tensors of the file by name, and what the file says. */
export interface Building {
  readonly graph: Graph
  readonly file: TowerFile
  /** Undefined if the file has no such tensor. */
  readonly find: (name: string) => Tensor | undefined
  /** @throws UnfitTensors if the file has no such tensor */
  readonly tensor: (name: string) => Tensor
}

export const linear = ({ find, graph, tensor }: Building, x: Tensor, name: string): Tensor =>
  graph.linear(x, tensor(`${name}.weight`), find(`${name}.bias`))

export const normed = ({ file, graph, tensor }: Building, x: Tensor, name: string): Tensor =>
  graph.layerNorm(x, tensor(`${name}.weight`), tensor(`${name}.bias`), file.epsilon)

/** A projector of two layers with GELU between them. */
export const twoLayers = (building: Building, x: Tensor, first: string, second: string): Tensor =>
  linear(building, building.graph.activate(linear(building, x, first), "gelu"), second)

/** A picture [width, height, 3] as rows of patches [tower width, patches], line by line. */
export const patchRows = ({ file, find, graph, tensor }: Building, picture: Tensor): Tensor => {
  const patches = graph.patches(tensor("v.patch_embd.weight"), picture, file.patch)
  const [columns, lines, width] = patches.shape
  const rows = graph.cont(graph.permute(graph.reshape(patches, columns * lines, width), 1, 0, 2, 3))
  const bias = find("v.patch_embd.bias")
  return bias === undefined ? rows : graph.add(rows, bias)
}

/**
 * Patches above which the weights between all of them are never in memory at once: 16 heads of 16,384 patches would take 17 GB.
 * Below, whole matrices are more exact: nothing is rounded to 16 bits. A guess; towers of a fixed size have at most 1,024.
 */
const mostAtOnce = 1_024

const attention = (
  building: Building,
  rows: Tensor,
  block: string,
  rotated: (heads: Tensor) => Tensor,
): Tensor => {
  const { file, find, graph } = building
  const { heads, width } = file
  const headWidth = width / heads
  const [, count] = rows.shape
  const fused = find(`${block}.attn_qkv.weight`) && linear(building, rows, `${block}.attn_qkv`)
  const part = (at: number, name: string): Tensor =>
    fused === undefined
      ? graph.reshape(linear(building, rows, `${block}.${name}`), headWidth, heads, count)
      : graph.headsOf(fused, headWidth, heads, at * width)
  const q = graph.permute(rotated(part(0, "attn_q")), 0, 2, 1, 3)
  const k = graph.permute(rotated(part(1, "attn_k")), 0, 2, 1, 3)
  const scale = headWidth ** -0.5
  if (count > mostAtOnce) {
    const values = graph.permute(part(2, "attn_v"), 0, 2, 1, 3)
    const flash = graph.flashAttention(q, k, values, scale)
    return linear(building, graph.reshape(flash, width, count), `${block}.attn_out`)
  }
  const v = graph.cont(graph.permute(part(2, "attn_v"), 1, 2, 0, 3))
  const weights = graph.softMax(graph.mulMat(k, q), scale)
  const mixed = graph.permute(graph.mulMat(v, weights), 0, 2, 1, 3)
  return linear(building, graph.cont(mixed, width, count), `${block}.attn_out`)
}

/** In files of old converters the two layers have each other's names. */
const areSwapped = ({ feedForward, width }: TowerFile, up: Tensor): boolean =>
  feedForward !== width && up.shape[0] === feedForward

const feedForward = (building: Building, rows: Tensor, block: string): Tensor => {
  const { file, graph, tensor } = building
  const swapped = areSwapped(file, tensor(`${block}.ffn_up.weight`))
  const [first, second] = swapped ? ["ffn_down", "ffn_up"] : ["ffn_up", "ffn_down"]
  const inner = graph.activate(linear(building, rows, `${block}.${first}`), file.activation)
  return linear(building, inner, `${block}.${second}`)
}

interface BlockOptions {
  /** How many blocks are run. */
  readonly count: number
  /** Applied to the queries and keys of every head. */
  readonly rotated?: (heads: Tensor) => Tensor
  /** Called with the result of every block. */
  readonly after?: (block: number, rows: Tensor) => void
}

/** Rows [tower width, patches] through the first `count` blocks and the norms around them. */
export const throughBlocks = (
  building: Building,
  rows: Tensor,
  { after = () => {}, count, rotated = (heads) => heads }: BlockOptions,
): Tensor => {
  const { find, graph } = building
  let x = find("v.pre_ln.weight") === undefined ? rows : normed(building, rows, "v.pre_ln")
  for (let block = 0; block < count; block++) {
    const name = `v.blk.${block}`
    x = graph.add(attention(building, normed(building, x, `${name}.ln1`), name, rotated), x)
    x = graph.add(x, feedForward(building, normed(building, x, `${name}.ln2`), name))
    after(block, x)
  }
  return find("v.post_ln.weight") === undefined ? x : normed(building, x, "v.post_ln")
}

// Builds one ggml graph. Shapes are tracked and checked here, the fastest dimension first as in ggml: a file whose tensors do
// not fit together must end as an error, while ggml would end the process.
import type { Pointer } from "../native/Libllama.ts"
import { type Ggml, valueType } from "./Ggml.ts"

export type Shape = readonly [number, number, number, number]

export interface Tensor {
  readonly at: Pointer
  readonly shape: Shape
}

/** Tensors of a tower that do not fit together. */
export class UnfitTensors extends Error {}

/** Most operations of a graph. A block has about 30; the deepest towers have below 50 blocks. */
const mostNodes = 8_192

const valuesOf = ([a, b, c, d]: Shape): number => a * b * c * d

const shown = (shape: Shape): string => `[${shape.join(", ")}]`

export const shapeOf = (sizes: ReadonlyArray<number>): Shape => {
  const [a = 1, b = 1, c = 1, d = 1] = sizes
  return [a, b, c, d]
}

export type Activation = "gelu" | "gelu_quick" | "silu"

export class Graph {
  readonly #ggml: Ggml
  readonly context: Pointer
  readonly graph: Pointer

  constructor(ggml: Ggml) {
    this.#ggml = ggml
    const bytes = Number(ggml.tensorOverhead()) * mostNodes * 2 + Number(ggml.graphOverhead(mostNodes, false))
    this.context = ggml.init({ mem_size: bytes, mem_buffer: null, no_alloc: true })
    this.graph = ggml.newGraph(this.context, mostNodes, false)
  }

  free(): void {
    this.#ggml.free(this.context)
  }

  input(shape: Shape, type: keyof typeof valueType = "f32"): Tensor {
    const at = this.#ggml.newTensor(this.context, valueType[type], ...shape)
    this.#ggml.setInput(at)
    return { at, shape }
  }

  /** The result; everything that it depends on is part of the graph. */
  output(tensor: Tensor): Tensor {
    this.#ggml.setOutput(tensor.at)
    this.#ggml.expand(this.graph, tensor.at)
    return tensor
  }

  #made(at: Pointer, shape: Shape): Tensor {
    return { at, shape }
  }

  #check(fits: boolean, what: string, a: Tensor, b: Tensor): void {
    if (!fits) throw new UnfitTensors(`${what} of ${shown(a.shape)} and ${shown(b.shape)}`)
  }

  #repeats(small: Tensor, large: Tensor): boolean {
    return large.shape.every((size, at) => size % small.shape[at]! === 0)
  }

  /** `b` is repeated to the shape of `a`. */
  add(a: Tensor, b: Tensor): Tensor {
    this.#check(this.#repeats(b, a), "sum", a, b)
    return this.#made(this.#ggml.add(this.context, a.at, b.at), a.shape)
  }

  mul(a: Tensor, b: Tensor): Tensor {
    this.#check(this.#repeats(b, a), "product", a, b)
    return this.#made(this.#ggml.mul(this.context, a.at, b.at), a.shape)
  }

  /** Each row of `x` times the transposed `w`: [n, m] and [n, k] make [m, k]. */
  mulMat(w: Tensor, x: Tensor): Tensor {
    const fits = w.shape[0] === x.shape[0] && x.shape[2] % w.shape[2] === 0 && x.shape[3] % w.shape[3] === 0
    this.#check(fits, "matrix product", w, x)
    const shape: Shape = [w.shape[1], x.shape[1], x.shape[2], x.shape[3]]
    return this.#made(this.#ggml.mulMat(this.context, w.at, x.at), shape)
  }

  linear(x: Tensor, w: Tensor, bias: Tensor | undefined): Tensor {
    const product = this.mulMat(w, x)
    return bias === undefined ? product : this.add(product, bias)
  }

  layerNorm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: number): Tensor {
    const normed = this.#made(this.#ggml.norm(this.context, x.at, epsilon), x.shape)
    return this.add(this.mul(normed, weight), bias)
  }

  activate(x: Tensor, by: Activation): Tensor {
    return this.#made(this.#ggml[by](this.context, x.at), x.shape)
  }

  /** Each query's mix of all values, queries and keys [width, rows, heads], as [width, heads, rows]; `values` [width, rows, heads]. */
  flashAttention(queries: Tensor, keys: Tensor, values: Tensor, scale: number): Tensor {
    const [width, rows, heads] = queries.shape
    this.#check(
      keys.shape.every((size, at) => size === queries.shape[at]),
      "attention",
      queries,
      keys,
    )
    this.#check(
      values.shape.every((size, at) => size === keys.shape[at]),
      "attention",
      keys,
      values,
    )
    const half = (x: Tensor) => this.#ggml.cast(this.context, x.at, valueType.f16)
    const at = this.#ggml.flashAttention(
      this.context,
      ...[queries.at, half(keys), half(values), null, scale, 0, 0],
    )
    // GGML_PREC_F32
    this.#ggml.setPrecision(at, 10)
    return this.#made(at, [width, heads, rows, 1])
  }

  softMax(x: Tensor, scale: number): Tensor {
    return this.#made(this.#ggml.softMax(this.context, x.at, null, scale, 0), x.shape)
  }

  /** A kernel [size, size, channels, outputs] over squares of a picture [width, height, channels] side by side. */
  patches(kernel: Tensor, picture: Tensor, size: number): Tensor {
    const [w, h, channels, outputs] = kernel.shape
    this.#check(w === size && h === size && channels === picture.shape[2], "patches", kernel, picture)
    const at = this.#ggml.conv2d(this.context, kernel.at, picture.at, size, size, 0, 0, 1, 1)
    return this.#made(at, [
      Math.floor(picture.shape[0] / size),
      Math.floor(picture.shape[1] / size),
      outputs,
      1,
    ])
  }

  reshape(x: Tensor, ...sizes: ReadonlyArray<number>): Tensor {
    const shape = shapeOf(sizes)
    if (valuesOf(shape) !== valuesOf(x.shape))
      throw new UnfitTensors(`${shown(x.shape)} cannot be read as ${shown(shape)}`)
    return this.#made(this.#ggml.reshape(this.context, x.at, ...shape), shape)
  }

  /** Dimension i becomes dimension axes[i]. */
  permute(x: Tensor, ...axes: readonly [number, number, number, number]): Tensor {
    const shape = [...x.shape]
    for (const [from, to] of axes.entries()) shape[to] = x.shape[from]!
    return this.#made(this.#ggml.permute(this.context, x.at, ...axes), shapeOf(shape))
  }

  /** A copy without gaps, read as another shape. */
  cont(x: Tensor, ...sizes: ReadonlyArray<number>): Tensor {
    const shape = sizes.length === 0 ? x.shape : shapeOf(sizes)
    if (valuesOf(shape) !== valuesOf(x.shape))
      throw new UnfitTensors(`${shown(x.shape)} cannot be read as ${shown(shape)}`)
    return this.#made(this.#ggml.cont(this.context, x.at, ...shape), shape)
  }

  /** Of rows of floats [n, rows]: the values from `first` on as [width, heads, rows]. */
  headsOf(x: Tensor, width: number, heads: number, first: number): Tensor {
    const [n, rows] = x.shape
    if (first + width * heads > n)
      throw new UnfitTensors(`${shown(x.shape)} has no ${heads} heads of ${width}`)
    const at = this.#ggml.view(
      this.context,
      x.at,
      ...[width, heads, rows, 1],
      ...[4 * width, 4 * n, 4 * n * rows, 4 * first],
    )
    return this.#made(at, [width, heads, rows, 1])
  }

  /** Rows [n, rows] and [m, rows] as [n + m, rows]. */
  joined(a: Tensor, b: Tensor): Tensor {
    this.#check(a.shape[1] === b.shape[1], "rows", a, b)
    const shape: Shape = [a.shape[0] + b.shape[0], a.shape[1], a.shape[2], a.shape[3]]
    return this.#made(this.#ggml.concat(this.context, a.at, b.at, 0), shape)
  }

  /** Rows [n, a] and [n, b] as [n, a + b]. */
  joinedRows(a: Tensor, b: Tensor): Tensor {
    this.#check(a.shape[0] === b.shape[0], "rows", a, b)
    const shape: Shape = [a.shape[0], a.shape[1] + b.shape[1], a.shape[2], a.shape[3]]
    return this.#made(this.#ggml.concat(this.context, a.at, b.at, 1), shape)
  }

  /** The last `count` of rows of floats [n, rows]. */
  lastRows(x: Tensor, count: number): Tensor {
    const [n, rows] = x.shape
    const at = this.#ggml.view(
      this.context,
      x.at,
      ...[n, count, 1, 1],
      ...[4 * n, 4 * n * count, 4 * n * count, 4 * n * (rows - count)],
    )
    return this.cont(this.#made(at, [n, count, 1, 1]))
  }

  /** [width, height, n] resampled between its corners: linear in both directions. */
  resampled(x: Tensor, width: number, height: number): Tensor {
    const [, , n] = x.shape
    // GGML_SCALE_MODE_BILINEAR and GGML_SCALE_FLAG_ALIGN_CORNERS.
    const mode = 1 | (1 << 8)
    const at = this.#ggml.interpolate(this.context, x.at, width, height, n, 1, mode)
    return this.#made(at, [width, height, n, 1])
  }

  /** Rotary positions of the cells of a picture, by line and column; `positions` has four numbers for each row. */
  ropeVision(x: Tensor, positions: Tensor): Tensor {
    const [width] = x.shape
    const sections = new Int32Array(4).fill(width / 4)
    // GGML_ROPE_TYPE_VISION; the other numbers are those of Qwen's towers in llama.cpp.
    const vision = 24
    const at = this.#ggml.ropeMulti(
      this.context,
      ...[x.at, positions.at, null, width / 2, sections, vision, 32_768],
      ...[10_000, 1, 0, 1, 32, 1],
    )
    return this.#made(at, x.shape)
  }
}

// The graph of Qwen3-VL and its successors: pictures of any grid. The position table is resampled to the grid, queries and keys
// are rotated by line and column, squares of 2 x 2 patches become one row, and rows of inner blocks (deepstack) are appended.
import { type Building, normed, throughBlocks, twoLayers } from "./Blocks.ts"
import type { Tensor } from "./Graph.ts"

const side = 2

/** [width, columns, lines] with the four patches of a square next to each other: [width, columns * lines]. */
const inSquares = ({ file, graph }: Building, x: Tensor, columns: number, lines: number): Tensor => {
  const { width } = file
  const pairs = graph.cont(x, width * side, columns / side, lines)
  const squares = graph.reshape(pairs, width * side, columns / side, side, lines / side)
  return graph.cont(graph.permute(squares, 0, 2, 1, 3), width, columns * lines)
}

/** The trained positions on another grid: [width, columns, lines]. */
const placesOn = ({ file, graph, tensor }: Building, columns: number, lines: number): Tensor => {
  const { width } = file
  const table = tensor("v.position_embd.weight")
  const trained = Math.round(Math.sqrt(table.shape[1]))
  const grid = graph.reshape(table, width, trained, trained)
  if (columns === trained && lines === trained) return grid
  const resampled = graph.resampled(graph.permute(grid, 2, 0, 1, 3), columns, lines)
  return graph.permute(resampled, 1, 2, 0, 3)
}

export const qwenRows = (building: Building, picture: Tensor, positions: () => Tensor): Tensor => {
  const { file, find, graph, tensor } = building
  const { blocks, patch, width } = file
  // Videos have two frames for each patch; a picture is both of them.
  const both = graph.add(
    graph.patches(tensor("v.patch_embd.weight"), picture, patch),
    graph.patches(tensor("v.patch_embd.weight.1"), picture, patch),
  )
  const [columns, lines] = both.shape
  const patches = inSquares(building, graph.permute(both, 1, 2, 0, 3), columns, lines)
  const placed = graph.add(
    graph.add(patches, tensor("v.patch_embd.bias")),
    inSquares(building, placesOn(building, columns, lines), columns, lines),
  )
  const cells = positions()
  const count = (columns * lines) / side ** 2
  let deep: Tensor | undefined
  const seen = throughBlocks(building, placed, {
    count: blocks,
    rotated: (heads) => graph.ropeVision(heads, cells),
    after: (block, rows) => {
      const name = `v.deepstack.${block}`
      if (find(`${name}.fc1.weight`) === undefined) return
      const squares = normed(building, graph.reshape(rows, width * side ** 2, count), `${name}.norm`)
      const feature = twoLayers(building, squares, `${name}.fc1`, `${name}.fc2`)
      deep = deep === undefined ? feature : graph.joined(deep, feature)
    },
  })
  const merged = twoLayers(building, graph.reshape(seen, width * side ** 2, count), "mm.0", "mm.2")
  return deep === undefined ? merged : graph.joined(merged, deep)
}

/** Line and column of each patch, twice, in the order of `inSquares`: all first numbers, then all second ones, and so on. */
export const cellPositions = (columns: number, lines: number): Int32Array => {
  const count = columns * lines
  const positions = new Int32Array(4 * count)
  let at = 0
  for (let line = 0; line < lines; line += side)
    for (let column = 0; column < columns; column += side)
      for (let cell = 0; cell < side ** 2; cell++, at++) {
        const y = line + Math.floor(cell / side)
        const x = column + (cell % side)
        positions[at] = y
        positions[count + at] = x
        positions[2 * count + at] = y
        positions[3 * count + at] = x
      }
  return positions
}

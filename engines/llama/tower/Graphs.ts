// The graph of each family: from the normalised picture to the rows that the text model reads.
import { type Building, linear, patchRows, throughBlocks, twoLayers } from "./Blocks.ts"
import { type Tensor, UnfitTensors } from "./Graph.ts"
import { qwenRows } from "./QwenGraph.ts"
import { type Projector, shapeIn, type TowerFile } from "./TowerFile.ts"

interface FamilyGraph {
  /** Values of a row for the text model. */
  readonly rowWidth: (file: TowerFile) => number
  /** From a picture [width, height, 3] to rows. `positions`: an input of four numbers for each patch, made by this call. */
  readonly rows: (building: Building, picture: Tensor, positions: () => Tensor) => Tensor
}

/** LLaVA: the last block is not used, two layers project each patch. */
const mlp: FamilyGraph = {
  rowWidth: (file) => shapeIn(file, "mm.2.weight")[1],
  rows: (building, picture) => {
    const { file, find, graph, tensor } = building
    const patches = patchRows(building, picture)
    const [width, count] = patches.shape
    // Towers of CLIP have a row for the whole picture before the patches, which the text model does not get.
    const whole = find("v.class_embd")
    const rows = whole === undefined ? patches : graph.joinedRows(graph.reshape(whole, width, 1), patches)
    const placed = graph.add(rows, tensor("v.position_embd.weight"))
    if (placed.shape[1] !== tensor("v.position_embd.weight").shape[1])
      throw new UnfitTensors(`v.position_embd.weight has no position for each of ${placed.shape[1]} rows`)
    const seen = throughBlocks(building, placed, { count: file.blocks - 1 })
    const cells = whole === undefined ? seen : graph.lastRows(seen, count)
    return twoLayers(building, cells, "mm.0", "mm.2")
  },
}

/** SmolVLM: squares of merge x merge patches become one row, which one layer projects. */
const idefics3: FamilyGraph = {
  rowWidth: (file) => shapeIn(file, "mm.model.fc.weight")[1],
  rows: (building, picture) => {
    const { file, graph, tensor } = building
    const { merge, patch, width } = file
    const columns = picture.shape[0] / patch
    const lines = picture.shape[1] / patch
    const placed = graph.add(patchRows(building, picture), tensor("v.position_embd.weight"))
    const seen = throughBlocks(building, placed, { count: file.blocks })
    const pairs = graph.reshape(seen, width * merge, columns / merge, lines)
    const turned = graph.cont(
      graph.permute(pairs, 0, 2, 1, 3),
      width * merge * merge,
      lines / merge,
      columns / merge,
    )
    const squares = graph.cont(
      graph.permute(turned, 0, 2, 1, 3),
      width * merge * merge,
      (columns / merge) * (lines / merge),
    )
    return linear(building, squares, "mm.model.fc")
  },
}

const qwen: FamilyGraph = {
  rowWidth: (file) => {
    const merged = shapeIn(file, "mm.2.weight")[1]
    const deep = [...file.shapes.keys()].filter((name) => /^v\.deepstack\.\d+\.fc2\.weight$/.test(name))
    return merged * (1 + deep.length)
  },
  rows: qwenRows,
}

export const familyGraphs: Readonly<Record<Projector, FamilyGraph>> = {
  idefics3,
  mlp,
  qwen3vl_merger: qwen,
}

// How each family shows a picture to its text model: sizes, tiles, markers. As llama.cpp's multimodal code does it (release v0.4.0),
// which follows the processors that the families were trained with. Pure but for the pixels.
import type { Projector, TowerFile } from "../tower/TowerFile.ts"
import { cropped, letterboxed, type Pixels, resized } from "./Resample.ts"

/** A part of a picture in the prompt: a marker of the family, or the rows of one tile. */
type PicturePart =
  | { readonly kind: "marker"; readonly text: string }
  | {
      readonly kind: "rows"
      /** Index among the picture's tiles. */
      readonly tile: number
      /** Cells of a line, and lines. Each cell is one row. */
      readonly columns: number
      readonly lines: number
    }

export interface PicturePlan {
  readonly parts: ReadonlyArray<PicturePart>
  /** What the tower reads, by tile. */
  readonly tiles: (picture: Pixels) => Promise<ReadonlyArray<Pixels>>
}

interface Size {
  readonly width: number
  readonly height: number
}

interface Family {
  /** `small`: the request asks for few rows. */
  readonly plan: (file: TowerFile, size: Size, small: boolean) => PicturePlan
  /** The markers, each of which has to be a token of the text model. */
  readonly markers: ReadonlyArray<string>
  /** Width times height of a picture above which nothing is gained. */
  readonly maxPixels: (file: TowerFile) => number
}

const marker = (text: string): PicturePart => ({ kind: "marker", text })

/** The colour around letterboxed pictures: the mean of CLIP's training pictures. */
const grey = [122, 116, 104] as const

const mlp: Family = {
  markers: [],
  maxPixels: () => 1 << 20,
  plan: ({ patch, size }) => ({
    parts: [{ kind: "rows", tile: 0, columns: size / patch, lines: size / patch }],
    tiles: async (picture) => [await letterboxed(picture, size, size, grey)],
  }),
}

const even = (pixels: number): number => pixels + (pixels % 2)

/** The size to which a picture is scaled, keeping its shape, before it is stretched to whole tiles. */
const scaledTo = ({ height, width }: Size, longest: number): Size => {
  const ratio = width / height
  return width >= height
    ? { width: longest, height: even(Math.trunc(longest / ratio)) }
    : { width: even(Math.trunc(longest * ratio)), height: longest }
}

/** Tiles of a side. A picture of the largest size has four times four; only lines of few pixels would have more. */
const mostTiles = 16

/** In files without `preproc_image_size`: the nearest whole number of tiles. */
const nearestTiles = (pixels: number, tile: number): number =>
  Math.min(mostTiles, Math.max(1, Math.round(Math.fround(pixels / tile))))

/** A picture may be a line of one pixel, which scaled to `longest` has no other side. */
const atLeastOne = (pixels: number): number => Math.max(1, pixels)

const smolTiles =
  (file: TowerFile, size: Size, grid: Size) =>
  async (picture: Pixels): Promise<ReadonlyArray<Pixels>> => {
    const { longest, size: tile } = file
    const { height: lines, width: columns } = grid
    const whole = { width: columns * tile, height: lines * tile }
    let refined: Pixels
    let overview: Pixels
    if (longest === undefined) {
      refined = await letterboxed(picture, whole.width, whole.height, [0, 0, 0])
      overview = await resized(picture, tile, tile, "bicubic")
    } else {
      const scaled = scaledTo(size, longest)
      const fitted = await resized(picture, atLeastOne(scaled.width), atLeastOne(scaled.height), "lanczos")
      refined = await resized(fitted, whole.width, whole.height, "lanczos")
      overview = await resized(refined, tile, tile, "lanczos")
    }
    const tiles = [overview]
    for (let line = 0; line < lines; line++)
      for (let column = 0; column < columns; column++)
        tiles.push(cropped(refined, column * tile, line * tile, tile, tile))
    return tiles
  }

const gridOf = ({ longest, size: tile }: TowerFile, size: Size): Size => {
  if (longest === undefined)
    return { width: nearestTiles(size.width, tile), height: nearestTiles(size.height, tile) }
  const scaled = scaledTo(size, longest)
  return {
    width: atLeastOne(Math.ceil(scaled.width / tile)),
    height: atLeastOne(Math.ceil(scaled.height / tile)),
  }
}

const around = "<fake_token_around_image>"
const lineBreak = "\n"
const beforeOverview = "\n\n"

/** The tiles line by line, unless few rows are asked for, then a small version of the whole picture. */
const idefics3: Family = {
  markers: [around, "<global-img>"],
  maxPixels: ({ longest, size }) => (longest ?? 4 * size) ** 2,
  plan: (file, size, small) => {
    const { merge, patch, size: tile } = file
    const grid = gridOf(file, size)
    const cells = tile / (patch * merge)
    const rows = (index: number): PicturePart => ({
      kind: "rows",
      tile: index,
      columns: cells,
      lines: cells,
    })
    const overview = [marker(around), marker("<global-img>"), rows(0), marker(around)]
    const whole = smolTiles(file, size, grid)
    if (small) return { parts: overview, tiles: async (picture) => (await whole(picture)).slice(0, 1) }
    const parts: Array<PicturePart> = []
    for (let line = 0; line < grid.height; line++) {
      if (line > 0) parts.push(marker(lineBreak))
      for (let column = 0; column < grid.width; column++)
        parts.push(
          marker(`${around}<row_${line + 1}_col_${column + 1}>`),
          rows(1 + line * grid.width + column),
        )
    }
    return { parts: [...parts, marker(beforeOverview), ...overview], tiles: whole }
  },
}

/** Rows of a picture: at least, at most, and at most if the request asks for few. The last is a guess, as many as OpenAI's `low`. */
const qwenRows = { least: 8, most: 4_096, few: 256 } as const

/** A line of pixels has more squares than the bound however it is scaled, so its longer side is shortened. */
const bounded = (size: Size, unit: number, most: number): Size => {
  const shorter = Math.min(size.width, size.height)
  const longest = Math.max(unit, Math.floor(most / shorter / unit) * unit)
  return { width: Math.min(size.width, longest), height: Math.min(size.height, longest) }
}

/** The nearest size in whole squares of `unit` pixels with a number of pixels between the bounds, about keeping the shape. */
export const squaresOf = (
  { height, width }: Size,
  unit: number,
  { least, most }: { readonly least: number; readonly most: number },
): Size => {
  // Divisions and roots in floats of 32 bits, as in llama.cpp: a size next to a bound would be rounded to another number.
  const f = Math.fround
  const rounded = (pixels: number) => Math.max(unit, Math.round(f(pixels / unit)) * unit)
  const size = { width: rounded(width), height: rounded(height) }
  const area = size.width * size.height
  if (area > most) {
    const shrink = f(Math.sqrt(f(f(height * width) / most)))
    const floored = (pixels: number) => Math.max(unit, Math.floor(f(f(pixels / shrink) / unit)) * unit)
    return bounded({ width: floored(width), height: floored(height) }, unit, most)
  }
  if (area < least) {
    const grow = f(Math.sqrt(f(least / f(height * width))))
    const raised = (pixels: number) => Math.ceil(f(f(pixels * grow) / unit)) * unit
    return bounded({ width: raised(width), height: raised(height) }, unit, most)
  }
  return size
}

const qwen: Family = {
  markers: ["<|vision_start|>", "<|vision_end|>"],
  maxPixels: ({ merge, patch }) => qwenRows.most * (merge * patch) ** 2,
  plan: ({ merge, patch }, size, small) => {
    const unit = merge * patch
    const most = small ? qwenRows.few : qwenRows.most
    const { height, width } = squaresOf(size, unit, {
      least: qwenRows.least * unit ** 2,
      most: most * unit ** 2,
    })
    return {
      parts: [
        marker("<|vision_start|>"),
        { kind: "rows", tile: 0, columns: width / unit, lines: height / unit },
        marker("<|vision_end|>"),
      ],
      tiles: async (picture) => [await letterboxed(picture, width, height, [0, 0, 0])],
    }
  },
}

export const families: Readonly<Record<Projector, Family>> = { idefics3, mlp, qwen3vl_merger: qwen }

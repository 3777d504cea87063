// Where the rows of pictures stand in a prompt. A prompt is a list of numbers: tokens are 0 and more, and every row of a picture
// is a negative number of its own, the same for the same picture. So two prompts share what they have in common, pictures included.

/** The rows of one tile in a prompt. */
export interface PictureSpan {
  /** Index of the first row in the prompt. */
  readonly at: number
  readonly count: number
  /** Cells of a line of the tile. */
  readonly columns: number
  readonly source: PictureSource
  readonly tile: number
}

/** Computes the rows of a picture. */
export interface PictureSource {
  readonly open: () => OpenPicture
}

/** A picture whose rows are wanted, until it is closed. */
export interface OpenPicture {
  /** `done` is called once, later, unless the picture is closed before. */
  readonly tile: (tile: number, done: (rows: TileRows | Error) => void) => void
  readonly close: () => void
}

/** All rows of a tile, one after the other. */
export type TileRows = Float32Array<ArrayBuffer>

/** Positions that a span takes in a sequence: with M-RoPE its longer side, else one for each row. */
export const positionsOf = ({ columns, count }: PictureSpan, coordinates: 1 | 4): number =>
  coordinates === 1 ? count : Math.max(columns, count / columns)

/**
 * Positions of `count` rows of a span from row `first` on. `begin`: the position of the span. With M-RoPE (4 coordinates): time,
 * line and column of all rows, one after the other, and zeros.
 */
export const rowPositions = (
  { columns }: PictureSpan,
  begin: number,
  first: number,
  count: number,
  coordinates: 1 | 4,
): Int32Array => {
  if (coordinates === 1) return Int32Array.from({ length: count }, (_, at) => begin + first + at)
  const positions = new Int32Array(4 * count)
  for (let at = 0; at < count; at++) {
    const row = first + at
    positions[at] = begin
    positions[count + at] = begin + Math.floor(row / columns)
    positions[2 * count + at] = begin + (row % columns)
  }
  return positions
}

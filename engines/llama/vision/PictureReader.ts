// What a picture is in a prompt of a model: markers of its family and rows, counted before anything is computed.
import { LRUCache } from "lru-cache"
import type { Picture } from "../../protocol/Text.ts"
import type { TowerFile } from "../tower/TowerFile.ts"
import { families } from "./Families.ts"
import type { PictureRows } from "./PictureRows.ts"
import type { PictureSpan } from "./Spans.ts"

/** A marker as text of the template, or the rows of a tile as numbers, with their span except its place. */
type PicturePiece =
  | { readonly marker: string }
  | { readonly numbers: ReadonlyArray<number>; readonly span: Omit<PictureSpan, "at"> }

/** Pictures whose numbers are remembered. A picture that is forgotten only loses what sequences still hold of it. A guess. */
const remembered = 4_096

export class PictureReader {
  readonly #file: TowerFile
  readonly #rows: PictureRows
  readonly #firstOf = new LRUCache<string, number>({ max: remembered })
  /** The number of the next new picture's first row. */
  #next = -1

  constructor(file: TowerFile, rows: PictureRows) {
    this.#file = file
    this.#rows = rows
  }

  /** `owner`: rows that were computed for another one are not used. */
  read(picture: Picture, owner?: number): ReadonlyArray<PicturePiece> {
    const small = picture.detail === "low"
    const family = families[this.#file.projector]
    const plan = family.plan(this.#file, picture, small)
    const key = `${owner ?? ""} ${picture.hash}${small ? " small" : ""}`
    const source = this.#rows.source(key, picture, plan)
    let total = 0
    for (const part of plan.parts) if (part.kind === "rows") total += part.columns * part.lines
    let first = this.#numberOf(key, total)
    return plan.parts.map((part) => {
      if (part.kind === "marker") return { marker: part.text }
      const { columns, lines, tile } = part
      const count = columns * lines
      const numbers = Array.from({ length: count }, (_, row) => first - row)
      first -= count
      return { numbers, span: { count, columns, tile, source } }
    })
  }

  #numberOf(key: string, rows: number): number {
    const known = this.#firstOf.get(key)
    if (known !== undefined) return known
    const first = this.#next
    this.#next -= rows
    this.#firstOf.set(key, first)
    return first
  }

  /** For the facts of the engine. */
  get maxPixels(): number {
    return families[this.#file.projector].maxPixels(this.#file)
  }

  /** E.g. "idefics3, tiles of 512 pixels". */
  get summary(): string {
    const { projector, size } = this.#file
    return projector === "qwen3vl_merger"
      ? `${projector}, any shape`
      : `${projector}, ${projector === "mlp" ? "squares" : "tiles"} of ${size} pixels`
  }
}

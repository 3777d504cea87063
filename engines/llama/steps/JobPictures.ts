// The pictures of one job's prompt: asks for the rows of one picture at a time and holds those of the next tile.
import type { RowAccess, RowItem } from "../native/Native.ts"
import {
  type OpenPicture,
  type PictureSource,
  type PictureSpan,
  positionsOf,
  rowPositions,
  type TileRows,
} from "../vision/Spans.ts"
import { type Jump, positionAt, type Slot } from "./Slots.ts"

export class JobPictures {
  readonly #spans: ReadonlyArray<PictureSpan>
  #open: { readonly source: PictureSource; readonly picture: OpenPicture } | undefined
  /** The tile whose rows are there or were asked for. */
  #wanted: PictureSpan | undefined
  #rows: TileRows | undefined

  constructor(spans: ReadonlyArray<PictureSpan>) {
    this.#spans = spans
  }

  /** Rows of the prompt. */
  get count(): number {
    return this.#spans.reduce((sum, { count }) => sum + count, 0)
  }

  /** The first span that ends behind this index of the prompt. */
  nextSpan(at: number): PictureSpan | undefined {
    return this.#spans.find((span) => span.at + span.count > at)
  }

  /** True if what stands at this index is a row that is not there. */
  isMissing(at: number): boolean {
    const span = this.nextSpan(at)
    return span !== undefined && span.at <= at && (span !== this.#wanted || this.#rows === undefined)
  }

  /** Asks for the next rows from this index on. `changed` is called when they are there, or have failed. */
  want(at: number, changed: (failure?: Error) => void): void {
    const span = this.nextSpan(at)
    if (span === undefined) return this.close()
    if (span === this.#wanted) return
    if (this.#open?.source !== span.source) {
      this.#open?.picture.close()
      this.#open = { source: span.source, picture: span.source.open() }
    }
    this.#wanted = span
    this.#rows = undefined
    this.#open.picture.tile(span.tile, (rows) => {
      if (this.#wanted !== span) return
      if (rows instanceof Error) return changed(rows)
      this.#rows = rows
      changed()
    })
  }

  /** No more rows are needed. */
  close(): void {
    this.#open?.picture.close()
    this.#open = undefined
    this.#wanted = undefined
    this.#rows = undefined
  }

  /** The next `take` rows of a sequence as a native call, and the jump of their picture; undefined if tokens are next. */
  item(
    slot: Pick<Slot<unknown>, "id" | "jumps" | "tokens">,
    take: number,
    { coordinates, width }: RowAccess,
  ): { readonly item: RowItem; readonly jump: Jump | undefined } | undefined {
    const at = slot.tokens.length
    const span = this.nextSpan(at)
    if (span === undefined || span.at > at) return undefined
    if (span !== this.#wanted || this.#rows === undefined) throw new Error("rows of a picture are missing")
    const first = at - span.at
    const begin = positionAt(slot, span.at)
    const positions = positionsOf(span, coordinates)
    return {
      item: {
        sequenceId: slot.id,
        rows: this.#rows.subarray(first * width, (first + take) * width),
        positions: rowPositions(span, begin, first, take, coordinates),
      },
      jump: positions === span.count ? undefined : { from: span.at, to: span.at + span.count, positions },
    }
  }
}

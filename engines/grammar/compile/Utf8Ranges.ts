// A range of code points as sequences of byte ranges in UTF-8. Pure.

export type ByteRange = readonly [low: number, high: number]

/** Last code points of 1, 2 and 3 bytes, and the borders of the surrogates, which have no UTF-8. */
const borders = [0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff]

const bytesOf = (code: number): ReadonlyArray<number> => {
  const last = (shift: number) => 0x80 | ((code >> shift) & 0x3f)
  if (code <= 0x7f) return [code]
  if (code <= 0x7ff) return [0xc0 | (code >> 6), last(0)]
  if (code <= 0xffff) return [0xe0 | (code >> 12), last(6), last(0)]
  return [0xf0 | (code >> 18), last(12), last(6), last(0)]
}

/** Where the range has to be cut so that all bytes but the first that differs are full ranges. -1: nowhere. */
const cutOf = (from: number, to: number): number => {
  for (const border of borders) if (from <= border && border < to) return border
  if (to <= 0x7f) return -1
  const length = bytesOf(from).length
  for (let shift = 6; shift < 6 * length; shift += 6) {
    const tail = (1 << shift) - 1
    if ((from & ~tail) === (to & ~tail)) continue
    if ((from & tail) !== 0) return from | tail
    if ((to & tail) !== tail) return (to & ~tail) - 1
  }
  return -1
}

export const utf8Ranges = (from: number, to: number): ReadonlyArray<ReadonlyArray<ByteRange>> => {
  const found: Array<ReadonlyArray<ByteRange>> = []
  const left: Array<readonly [number, number]> = [[Math.max(from, 0), Math.min(to, 0x10ffff)]]
  for (let range = left.pop(); range !== undefined; range = left.pop()) {
    const [low, high] = range
    if (low > high || (low >= 0xd800 && high <= 0xdfff)) continue
    const cut = cutOf(low, high)
    if (cut >= 0) {
      left.push([cut + 1, high], [low, cut])
      continue
    }
    const highest = bytesOf(high)
    found.push(bytesOf(low).map((byte, at) => [byte, highest[at]!] as const))
  }
  return found
}

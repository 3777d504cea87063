// Limits the boundaries of a multipart body. Effect's parser counts only parts that have a head or content, but
// adjacent boundaries cost it as much: 100 MB may hold 20 million of them, 5 bytes each. Each piece is checked before
// the parser sees it. Pure.

/** RFC 2046: 1 to 70 of these characters. */
const unquoted = /^[\w'()+,./:=?-]{1,70}$/
const parameter = /;[ \t]*boundary=(?:"([^"\\]*)"|([^\s;"]*))[ \t]*(?=;|$)/gi

/** The boundary in a content type. Undefined if there is none, if there are several, or if it has other characters. */
export const boundaryOf = (contentType: string): string | undefined => {
  const [found, another] = contentType.matchAll(parameter)
  const boundary = found?.[1] ?? found?.[2] ?? ""
  const named = contentType.toLowerCase().split("boundary").length - 1
  // The word may be part of the boundary itself, as in "----WebKitFormBoundary…".
  const own = boundary.toLowerCase().split("boundary").length - 1
  return another === undefined && named === own + 1 && unquoted.test(boundary) ? boundary : undefined
}

export class BoundaryBudget {
  readonly #needle: Buffer
  #left: number

  /** @param most boundaries in all, including the last */
  constructor(boundary: string, most: number) {
    // The first boundary of a body has no line break before it and is not counted.
    this.#needle = Buffer.from(`\r\n--${boundary}`)
    this.#left = most
  }

  /**
   * False if the body has too many boundaries. A boundary that lies across two pieces is not counted: a valid body is
   * never refused, and each piece lets at most one more through.
   */
  take(piece: Uint8Array): boolean {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    for (
      let at = bytes.indexOf(this.#needle);
      at >= 0;
      at = bytes.indexOf(this.#needle, at + this.#needle.length)
    ) {
      if (--this.#left < 0) return false
    }
    return true
  }
}

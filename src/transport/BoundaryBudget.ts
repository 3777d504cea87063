// How many boundaries a multipart body may have. Effect's parser counts parts that have a head or a content; boundaries
// one behind the other cost it as much and are not counted: 100 MB may hold 20 million of them, 5 bytes each. Asked by
// UwsRequest for every piece before the parser sees it. Pure.

/** RFC 2046: 1 to 70 of these. */
const unquoted = /^[\w'()+,./:=?-]{1,70}$/
const parameter = /;[ \t]*boundary=(?:"([^"\\]*)"|([^\s;"]*))[ \t]*(?=;|$)/gi

/** The boundary that a content type names; undefined where it names none, several or one that is not allowed. */
export const boundaryOf = (contentType: string): string | undefined => {
  const [found, another] = contentType.matchAll(parameter)
  const boundary = found?.[1] ?? found?.[2] ?? ""
  const named = contentType.toLowerCase().split("boundary").length - 1
  // The word may be part of the boundary itself, as in "----WebKitFormBoundary…".
  const own = boundary.toLowerCase().split("boundary").length - 1
  return another === undefined && named === own + 1 && unquoted.test(boundary) ? boundary : undefined
}

export class BoundaryBudget {
  private readonly needle: Buffer
  private left: number

  /** @param most boundaries in all, the last one included */
  constructor(boundary: string, most: number) {
    // The first of a body has no line break before it, and is not counted.
    this.needle = Buffer.from(`\r\n--${boundary}`)
    this.left = most
  }

  /**
   * False where the body has too many. One that lies across two pieces is not found, so an honest body is never refused,
   * and each piece lets at most one more through.
   */
  take(piece: Uint8Array): boolean {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    for (
      let at = bytes.indexOf(this.needle);
      at >= 0;
      at = bytes.indexOf(this.needle, at + this.needle.length)
    ) {
      if (--this.left < 0) return false
    }
    return true
  }
}

// `data:` URLs with base64, as pictures are sent in JSON. Pure.
import type { PictureFlaw } from "./PictureHead.ts"

/** Longest text before the data: a media type and its parameters. A guess, generous. */
const maxHeadChars = 256

/** Data that are decoded at a time, characters: 0.1 ms. A multiple of 4, whose groups are three bytes. */
const pieceChars = 64 * 1024

const base64 = /^([A-Za-z0-9+/_-]*)(=*)$/

export const isDataUrl = (text: string): boolean => /^data:/i.test(text.slice(0, 5))

/** Decodes a `data:` URL that is given as UTF-8, a part at a time. What it says about their type is not read, because programs often say something wrong. */
export class DataUrlReader {
  readonly #url: Buffer
  #at = 0
  #made: Buffer | undefined
  #size = 0
  /** The last characters of a piece that are no group of four. */
  #rest = ""
  #padding = 0

  constructor(url: Uint8Array) {
    this.#url = Buffer.from(url.buffer, url.byteOffset, url.byteLength)
  }

  /** Reads on until `isOver`. The bytes, or what is wrong; undefined if there is more to read. */
  read(isOver: () => boolean): Uint8Array | PictureFlaw | undefined {
    this.#made ??= this.#begin()
    if (this.#made === undefined)
      return { flaw: "must be a data: URL with base64, like data:image/png;base64,…" }
    do {
      if (!this.#step(this.#made)) return { flaw: "has data that are not base64" }
      if (this.#at >= this.#url.length) return new Uint8Array(this.#made.buffer, 0, this.#size)
    } while (!isOver())
  }

  #begin(): Buffer | undefined {
    const beginning = this.#url.toString("latin1", 0, maxHeadChars)
    const comma = beginning.indexOf(",")
    if (!/;\s*base64\s*$/i.test(beginning.slice(0, Math.max(0, comma)))) return undefined
    this.#at = comma + 1
    return Buffer.from(new ArrayBuffer(Math.ceil(((this.#url.length - this.#at) * 3) / 4)))
  }

  /** False if it is not base64. */
  #step(made: Buffer): boolean {
    const to = Math.min(this.#url.length, this.#at + pieceChars)
    const piece = this.#url.toString("latin1", this.#at, to)
    this.#at = to
    const found = base64.exec(/\s/.test(piece) ? piece.replace(/\s+/g, "") : piece)
    if (found === null) return false
    const [, data = "", padding = ""] = found
    if (this.#padding > 0 && data !== "") return false
    this.#padding += padding.length
    if (this.#padding > 2) return false
    const text = this.#rest === "" ? data : this.#rest + data
    const whole = to >= this.#url.length ? text.length : text.length - (text.length % 4)
    this.#rest = text.slice(whole)
    this.#size += made.write(whole === text.length ? text : text.slice(0, whole), this.#size, "base64")
    return true
  }
}

/** The same of a URL that is short enough to be decoded in one go. */
export const bytesOfDataUrl = (url: string): Uint8Array | PictureFlaw => {
  const read = new DataUrlReader(Buffer.from(url)).read(() => false)
  // Never: it reads on until it is over.
  if (read === undefined) throw new Error("a data: URL that was not read to its end")
  return read
}

// Counts the samples that an MP4 file declares, from box headers and a few fields, before FFmpeg builds an index of
// them. Pure except for the reader. Files that this parser does not understand are left to FFmpeg and the memory limit
// of the process.

import type { ReadAt } from "./Container.ts"

/**
 * Boxes parsed at most; files with more are left to the memory limit. A guess: 20 hours in fragments of a second have
 * half of it.
 */
const mostBoxes = 1_000_000
/** Sound tables are nested eight levels deep. */
const deepest = 10
/** Bytes per read: the boxes of a fragment, and little of the samples between two of them. */
const windowBytes = 4_096
/** FFmpeg indexes this many samples together if each lasts one tick, as in uncompressed sound. */
const samplesTogether = 1_024

const containers = new Set(["moov", "trak", "mdia", "minf", "stbl", "moof", "traf"])

/** Reads ahead, because boxes are small and many. */
class Window {
  readonly #read: ReadAt
  #from = 0
  #bytes: DataView = new DataView(new ArrayBuffer(0))

  constructor(read: ReadAt) {
    this.#read = read
  }

  /** Undefined beyond the end of the file. */
  at(offset: number, length: number): DataView | undefined {
    if (offset < this.#from || offset + length > this.#from + this.#bytes.byteLength) {
      const bytes = this.#read(offset, windowBytes)
      this.#from = offset
      this.#bytes = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      if (bytes.byteLength < length) return undefined
    }
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + offset - this.#from, length)
  }
}

interface Track {
  samples: number
  /** True if each sample lasts one tick. */
  isUncompressed: boolean
}

/** Entries that an index of all tracks and fragments would have. `sizeBytes` is the file's size. */
export const declaredSamples = (read: ReadAt, sizeBytes: number): number => {
  const window = new Window(read)
  let boxes = 0
  let samples = 0

  const walk = (from: number, to: number, depth: number, track?: Track): void => {
    for (let at = from; at + 8 <= to && boxes++ < mostBoxes; ) {
      const head = window.at(at, 8)
      if (head === undefined) return
      let size = head.getUint32(0)
      const type = String.fromCharCode(head.getUint8(4), head.getUint8(5), head.getUint8(6), head.getUint8(7))
      let body = at + 8
      if (size === 1) {
        const long = window.at(body, 8)
        if (long === undefined) return
        size = Number(long.getBigUint64(0))
        body += 8
      } else if (size === 0) size = to - at
      if (size < body - at) return
      const end = Math.min(to, at + size)
      if (type === "trak" && depth < deepest) {
        const own: Track = { samples: 0, isUncompressed: false }
        walk(body, end, depth + 1, own)
        samples += own.isUncompressed ? Math.ceil(own.samples / samplesTogether) : own.samples
      } else if (containers.has(type) && depth < deepest) walk(body, end, depth + 1, track)
      else look(type, body, track)
      at += size
    }
  }

  const look = (type: string, body: number, track: Track | undefined): void => {
    if (type === "trun") samples += window.at(body + 4, 4)?.getUint32(0) ?? 0
    if (track === undefined) return
    if (type === "stsz" || type === "stz2") track.samples += window.at(body + 8, 4)?.getUint32(0) ?? 0
    if (type === "stts") {
      const fields = window.at(body + 4, 12)
      track.isUncompressed = fields?.getUint32(0) === 1 && fields.getUint32(8) === 1
    }
  }

  walk(0, sizeBytes, 0)
  return samples
}

// Picture files made by the test: their pixels are known exactly, and their headers can say anything.
import { crc32, deflateSync } from "node:zlib"

/** The colour of a pixel: red, green, blue, and opacity where the format has it. */
type Paint = (x: number, y: number) => readonly [number, number, number, number?]

export const plain =
  (red: number, green: number, blue: number, opacity = 255): Paint =>
  () => [red, green, blue, opacity]

/** Red, green, blue and white quarters, row by row. */
export const quarters =
  (width: number, height: number): Paint =>
  (x, y) => {
    const right = x >= width / 2
    if (y < height / 2) return right ? [0, 255, 0] : [255, 0, 0]
    return right ? [255, 255, 255] : [0, 0, 255]
  }

export const pngChunk = (name: string, data: Uint8Array): Buffer => {
  const body = Buffer.concat([Buffer.from(name), data])
  const chunk = Buffer.alloc(body.length + 8)
  chunk.writeUInt32BE(data.length, 0)
  body.copy(chunk, 4)
  chunk.writeUInt32BE(crc32(body), body.length + 4)
  return chunk
}

/** Of PNG's ways to store a pixel: grey, RGB, grey with opacity, RGB with opacity. */
type PngColour = 0 | 2 | 4 | 6

interface PngOptions {
  readonly colour?: PngColour
  readonly bits?: 8 | 16
  /** Chunks before the pixels. */
  readonly before?: ReadonlyArray<Buffer>
}

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

export const pngHeader = (width: number, height: number, bits = 8, colour = 2): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([bits, colour, 0, 0, 0], 8)
  return pngChunk("IHDR", header)
}

/** A PNG of compressed rows, whatever they are. */
export const pngOf = (header: Buffer, rows: Uint8Array, before: ReadonlyArray<Buffer> = []): Buffer =>
  Buffer.concat([signature, header, ...before, pngChunk("IDAT", rows), pngChunk("IEND", Buffer.alloc(0))])

export const png = (width: number, height: number, paint: Paint, options: PngOptions = {}): Buffer => {
  const { before = [], bits = 8, colour = 2 } = options
  const hasOpacity = colour >= 4
  const isGrey = colour === 0 || colour === 4
  const values = (isGrey ? 1 : 3) + (hasOpacity ? 1 : 0)
  const valueBytes = bits / 8
  const rows = Buffer.alloc(height * (1 + width * values * valueBytes))
  let at = 0
  for (let y = 0; y < height; y++) {
    at++
    for (let x = 0; x < width; x++) {
      const [red, green, blue, opacity = 255] = paint(x, y)
      const painted = [...(isGrey ? [red] : [red, green, blue]), ...(hasOpacity ? [opacity] : [])]
      for (const value of painted) {
        // 16 bits: the byte twice, so that 255 is 65,535.
        for (let byte = 0; byte < valueBytes; byte++) rows[at++] = value
      }
    }
  }
  return pngOf(pngHeader(width, height, bits, colour), deflateSync(rows), before)
}

/** A PNG of at most 256 colours, some of them transparent. */
export const palettePng = (
  width: number,
  height: number,
  colours: ReadonlyArray<readonly [number, number, number, number]>,
  index: (x: number, y: number) => number,
): Buffer => {
  const rows = Buffer.alloc(height * (1 + width))
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = index(x, y)
  }
  const palette = Buffer.from(colours.flatMap((colour) => colour.slice(0, 3)))
  const opacities = Buffer.from(colours.map(([, , , opacity]) => opacity))
  return pngOf(pngHeader(width, height, 8, 3), deflateSync(rows), [
    pngChunk("PLTE", palette),
    pngChunk("tRNS", opacities),
  ])
}

/** Rows of four bytes from the bottom, as in the oldest files of this format. */
export const bmp = (width: number, height: number, paint: Paint): Buffer => {
  const stride = Math.ceil((width * 3) / 4) * 4
  const file = Buffer.alloc(54 + stride * height)
  file.write("BM")
  file.writeUInt32LE(file.length, 2)
  file.writeUInt32LE(54, 10)
  file.writeUInt32LE(40, 14)
  file.writeInt32LE(width, 18)
  file.writeInt32LE(height, 22)
  file.writeUInt16LE(1, 26)
  file.writeUInt16LE(24, 28)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [red, green, blue] = paint(x, height - 1 - y)
      file.set([blue, green, red], 54 + y * stride + 3 * x)
    }
  }
  return file
}

/** Codes of one colour each, 9 bits wide, with a clear code before the table of codes grows. */
const gifCodes = (pixels: ReadonlyArray<number>): Buffer => {
  const codes: Array<number> = []
  for (const [at, pixel] of pixels.entries()) {
    if (at % 200 === 0) codes.push(256)
    codes.push(pixel)
  }
  codes.push(257)
  const bytes: Array<number> = []
  let bits = 0
  let held = 0
  for (const code of codes) {
    held |= code << bits
    for (bits += 9; bits >= 8; bits -= 8) {
      bytes.push(held & 255)
      held >>>= 8
    }
  }
  if (bits > 0) bytes.push(held & 255)
  const blocks: Array<number> = []
  for (let at = 0; at < bytes.length; at += 255) {
    const block = bytes.slice(at, at + 255)
    blocks.push(block.length, ...block)
  }
  return Buffer.from([8, ...blocks, 0])
}

/** A frame of a GIF that fills it with colours of the table of `gif`. */
const gifFrame = (width: number, height: number, index: (x: number, y: number) => number): Buffer => {
  const descriptor = Buffer.from([0x2c, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  descriptor.writeUInt16LE(width, 5)
  descriptor.writeUInt16LE(height, 7)
  const pixels = Array.from({ length: width * height }, (_, at) => index(at % width, Math.floor(at / width)))
  return Buffer.concat([descriptor, gifCodes(pixels)])
}

/** Frames of the colours of 3 bits of red, 3 of green and 2 of blue. */
export const gif = (width: number, height: number, frames: ReadonlyArray<Paint>): Buffer => {
  const screen = Buffer.from([0, 0, 0, 0, 0xf7, 0, 0])
  screen.writeUInt16LE(width, 0)
  screen.writeUInt16LE(height, 2)
  const table = Buffer.alloc(768)
  for (let code = 0; code < 256; code++) {
    table.set([((code >> 5) * 255) / 7, (((code >> 2) & 7) * 255) / 7, ((code & 3) * 255) / 3], 3 * code)
  }
  const drawn = frames.map((paint) =>
    gifFrame(width, height, (x, y) => {
      const [red, green, blue] = paint(x, y)
      return (
        (Math.round((red * 7) / 255) << 5) |
        (Math.round((green * 7) / 255) << 2) |
        Math.round((blue * 3) / 255)
      )
    }),
  )
  return Buffer.concat([Buffer.from("GIF89a"), screen, table, ...drawn, Buffer.from([0x3b])])
}

export const dataUrl = (file: Uint8Array, type = "image/png"): string =>
  `data:${type};base64,${Buffer.from(file).toString("base64")}`

/** Bits, the highest first, filled up with ones; every byte of ones is followed by a zero. */
const entropyCoded = (bits: string): Buffer => {
  const filled = bits.padEnd(8 * Math.ceil(bits.length / 8), "1")
  const bytes = Array.from({ length: filled.length / 8 }, (_, at) =>
    Number.parseInt(filled.slice(8 * at, 8 * at + 8), 2),
  )
  return Buffer.from(bytes.flatMap((byte) => (byte === 0xff ? [0xff, 0] : [byte])))
}

const segment = (marker: number, ...body: ReadonlyArray<number>): Buffer =>
  Buffer.from([0xff, marker, (body.length + 2) >> 8, (body.length + 2) & 255, ...body])

/** A grey progressive JPEG whose scans, all but the first, are a few bytes that say "nothing changes" for every block. */
export const manyScans = (side: number, scans: number): Buffer => {
  const blocks = Math.ceil(side / 8) ** 2
  /** A table with one code of one bit. */
  const table = (place: number, symbol: number) => segment(0xc4, place, 1, ...Array(15).fill(0), symbol)
  const scan = (first: number, last: number, bits: string) =>
    Buffer.concat([segment(0xda, 1, 1, 0, first, last, 0), entropyCoded(bits)])
  // "14: so many blocks and 2^14 more end here".
  const rest = scan(1, 63, `0${"1".repeat(14)}`.repeat(Math.ceil(blocks / 32_767)))
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xdb, 0, ...Array(64).fill(1)),
    segment(0xc2, 8, side >> 8, side & 255, side >> 8, side & 255, 1, 1, 0x11, 0),
    table(0x00, 0),
    table(0x10, 0xe0),
    scan(0, 0, "0".repeat(blocks)),
    ...Array.from({ length: scans - 1 }, () => rest),
    Buffer.from([0xff, 0xd9]),
  ])
}

// Protocol-buffer messages of large files: positional reads that skip weights, and the encoders that an edit of a graph
// needs. Knows no field numbers of ONNX.
import type { FileHandle } from "node:fs/promises"

export interface Field {
  readonly number: number
  /** Position of the field's key. */
  readonly from: number
  /** Position and size of the content of a length-delimited field. For other wire types the value's position, and size 0. */
  readonly at: number
  readonly size: number
  /** Where the next field begins. */
  readonly end: number
  /** Value of a varint field; 0 for the other wire types. */
  readonly value: number
}

/** Fields and headers are small and close together; weights are skipped, not read. */
const windowBytes = 64 * 1024

export class Reader {
  readonly #file: FileHandle
  #window: Buffer = Buffer.alloc(0)
  #windowAt = 0

  constructor(file: FileHandle) {
    this.#file = file
  }

  /** A view into the reader's window, valid until the next read. Shorter than `size` at the end of the file. */
  async bytes(at: number, size: number): Promise<Buffer> {
    if (at < this.#windowAt || at + size > this.#windowAt + this.#window.length) {
      const buffer = Buffer.alloc(Math.max(windowBytes, size))
      const { bytesRead } = await this.#file.read(buffer, 0, buffer.length, at)
      this.#window = buffer.subarray(0, bytesRead)
      this.#windowAt = at
    }
    return this.#window.subarray(at - this.#windowAt, at - this.#windowAt + size)
  }

  async text(field: Field): Promise<string> {
    return (await this.bytes(field.at, field.size)).toString("utf8")
  }

  /** Value and width of the varint at `at`; lengths of real files are far below 2^53. */
  async varint(at: number): Promise<readonly [number, number]> {
    const bytes = await this.bytes(at, 10)
    let value = 0
    for (let i = 0; i < bytes.length; i++) {
      value += (bytes[i]! & 0x7f) * 2 ** (7 * i)
      if (bytes[i]! < 0x80) return [value, i + 1]
    }
    throw new RangeError(`no varint at byte ${at}`)
  }
}

/** The fields of the message from byte `start` to byte `end`. @throws RangeError if the file is damaged. */
export async function* fields(reader: Reader, start: number, end: number): AsyncGenerator<Field> {
  for (let at = start; at < end; ) {
    const from = at
    const [key, keyBytes] = await reader.varint(at)
    at += keyBytes
    const number = Math.floor(key / 8)
    const wireType = key % 8
    if (wireType === 2) {
      const [size, sizeBytes] = await reader.varint(at)
      at += sizeBytes
      if (at + size > end) throw new RangeError(`field ${number} runs past its message`)
      yield { number, from, at, size, end: at + size, value: 0 }
      at += size
    } else if (wireType === 0) {
      const [value, valueBytes] = await reader.varint(at)
      yield { number, from, at, size: 0, end: at + valueBytes, value }
      at += valueBytes
    } else {
      if (wireType !== 1 && wireType !== 5) throw new RangeError(`wire type ${wireType} at byte ${at}`)
      const end = at + (wireType === 1 ? 8 : 4)
      yield { number, from, at, size: 0, end, value: 0 }
      at = end
    }
  }
}

const varintOf = (value: number): Uint8Array => {
  const out: Array<number> = []
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) out.push((rest % 128) + 128)
  out.push(rest)
  return Uint8Array.from(out)
}

export const writeInteger = (field: number, value: number): Uint8Array =>
  Buffer.concat([varintOf(field * 8), varintOf(value)])

export const writeBytes = (field: number, content: Uint8Array): Uint8Array =>
  Buffer.concat([varintOf(field * 8 + 2), varintOf(content.length), content])

export const writeText = (field: number, value: string): Uint8Array =>
  writeBytes(field, Buffer.from(value, "utf8"))

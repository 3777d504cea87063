// Writes another pre-tokenizer into the header of a GGUF file. The vocabulary stays; the rules that split text before the merges
// change.
import { readFileSync, writeFileSync } from "node:fs"

const key = "tokenizer.ggml.pre"

/** Tensor data begins at a multiple of this many bytes unless the file says otherwise. */
const alignment = 32

/** Position of a string value in the header, after its key and its type. */
const placeOf = (bytes: Buffer): number => {
  const at = bytes.indexOf(key)
  if (at < 0) throw new Error(`the file has no ${key}`)
  return at + key.length + 4
}

/** Writes `from` to `to` with `pre`. The offsets of the tensors stay, because they count from the aligned end of the header. */
export const repadded = (from: string, to: string, pre: string): void => {
  const bytes = readFileSync(from)
  const at = placeOf(bytes)
  const length = Number(bytes.readBigUInt64LE(at))
  const value = Buffer.alloc(8 + pre.length)
  value.writeBigUInt64LE(BigInt(pre.length))
  value.write(pre, 8)
  const end = at + 8 + length
  const grown = pre.length - length
  const headerEnd = endOfHeader(bytes)
  const padding = (size: number): number => (alignment - (size % alignment)) % alignment
  const data = headerEnd + padding(headerEnd)
  const header = Buffer.concat([bytes.subarray(0, at), value, bytes.subarray(end, headerEnd)])
  if (header.length !== headerEnd + grown) throw new Error("the header was cut wrongly")
  writeFileSync(to, Buffer.concat([header, Buffer.alloc(padding(header.length)), bytes.subarray(data)]))
}

const sizes: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
}

/** Position of the end of the tensor descriptions. */
const endOfHeader = (bytes: Buffer): number => {
  let at = 8
  const number = (): number => {
    at += 8
    return Number(bytes.readBigUInt64LE(at - 8))
  }
  const text = (): void => {
    const length = number()
    at += length
  }
  const value = (type: number): void => {
    if (type === 8) return text()
    if (type !== 9) {
      at += sizes[type] ?? 0
      return
    }
    const of = bytes.readUInt32LE(at)
    at += 4
    for (let count = number(); count > 0; count--) value(of)
  }
  const tensors = number()
  const pairs = number()
  for (let nth = 0; nth < pairs; nth++) {
    text()
    at += 4
    value(bytes.readUInt32LE(at - 4))
  }
  for (let nth = 0; nth < tensors; nth++) {
    text()
    at += 4 + 8 * bytes.readUInt32LE(at)
    at += 4 + 8
  }
  return at
}

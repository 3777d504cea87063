// Writes a GGUF file (version 3, little-endian) piece by piece: metadata, tensor table, tensors. Independent of any
// model.
import { open } from "node:fs/promises"
import type { RandomWords } from "../RandomWords.ts"
import { blockTypes, tensorBytes, tensorSizeBytes } from "./Blocks.ts"
import type { Tensor } from "./Shapes.ts"

/** Numbers of the value types in the format. */
const typeNumbers = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const

type GgufValue =
  | { readonly type: "uint32" | "float32"; readonly value: number }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "strings"; readonly value: ReadonlyArray<string> }
  | { readonly type: "float32s" | "int32s"; readonly value: ReadonlyArray<number> }

export type GgufMetadata = Readonly<Record<string, GgufValue>>

/** Tensors begin at multiples of this many bytes: the format's default. */
const alignment = 32

const aligned = (bytes: number): number => Math.ceil(bytes / alignment) * alignment

/** A buffer that grows. */
class Header {
  #bytes = Buffer.alloc(1 << 20)
  #size = 0

  #claim(bytes: number): number {
    const at = this.#size
    this.#size += bytes
    if (this.#size > this.#bytes.length)
      this.#bytes = Buffer.concat([this.#bytes], Math.max(this.#size, 2 * this.#bytes.length))
    return at
  }
  uint8(value: number): void {
    const at = this.#claim(1)
    this.#bytes.writeUInt8(value, at)
  }
  int32(value: number): void {
    const at = this.#claim(4)
    this.#bytes.writeInt32LE(value, at)
  }
  float32(value: number): void {
    const at = this.#claim(4)
    this.#bytes.writeFloatLE(value, at)
  }
  uint64(value: number): void {
    const at = this.#claim(8)
    this.#bytes.writeBigUInt64LE(BigInt(value), at)
  }
  text(value: string): void {
    const bytes = Buffer.byteLength(value)
    this.uint64(bytes)
    const at = this.#claim(bytes)
    this.#bytes.write(value, at)
  }
  /** The content, padded to the start of the tensors. */
  padded(): Buffer {
    const at = this.#claim(aligned(this.#size) - this.#size)
    this.#bytes.fill(0, at, this.#size)
    return this.#bytes.subarray(0, this.#size)
  }
}

const writeArray = <A>(
  header: Header,
  type: number,
  values: ReadonlyArray<A>,
  write: (value: A) => void,
): void => {
  header.int32(typeNumbers.array)
  header.int32(type)
  header.uint64(values.length)
  for (const value of values) write(value)
}

const writeValue = (header: Header, of: GgufValue): void => {
  switch (of.type) {
    case "strings":
      return writeArray(header, typeNumbers.string, of.value, (value) => header.text(value))
    case "float32s":
      return writeArray(header, typeNumbers.float32, of.value, (value) => header.float32(value))
    case "int32s":
      return writeArray(header, typeNumbers.int32, of.value, (value) => header.int32(value))
    case "bool":
      header.int32(typeNumbers.bool)
      return header.uint8(of.value ? 1 : 0)
    case "string":
      header.int32(typeNumbers.string)
      return header.text(of.value)
    case "float32":
      header.int32(typeNumbers.float32)
      return header.float32(of.value)
    case "uint32":
      header.int32(typeNumbers.uint32)
      return header.int32(of.value)
  }
}

const headerOf = (metadata: GgufMetadata, tensors: ReadonlyArray<Tensor>): Buffer => {
  const header = new Header()
  for (const letter of Buffer.from("GGUF")) header.uint8(letter)
  header.int32(3)
  header.uint64(tensors.length)
  header.uint64(Object.keys(metadata).length)
  for (const [key, value] of Object.entries(metadata)) {
    header.text(key)
    writeValue(header, value)
  }
  let offset = 0
  for (const tensor of tensors) {
    const { name, shape, type } = tensor
    header.text(name)
    header.int32(shape.length)
    for (const size of shape) header.uint64(size)
    header.int32(blockTypes[type].id)
    header.uint64(offset)
    offset = aligned(offset + tensorSizeBytes(tensor))
  }
  return header.padded()
}

interface GgufFile {
  readonly metadata: GgufMetadata
  readonly tensors: ReadonlyArray<Tensor>
  /** Source of the random values. */
  readonly random: RandomWords
}

/** Fails if `path` exists. Holds one chunk of a tensor in memory at a time. */
export const writeGguf = async (path: string, { metadata, random, tensors }: GgufFile): Promise<void> => {
  const file = await open(path, "wx")
  try {
    await file.writeFile(headerOf(metadata, tensors))
    for (const tensor of tensors) {
      for (const chunk of tensorBytes(tensor, random)) await file.writeFile(chunk)
      const sizeBytes = tensorSizeBytes(tensor)
      await file.writeFile(new Uint8Array(aligned(sizeBytes) - sizeBytes))
    }
  } finally {
    await file.close()
  }
}

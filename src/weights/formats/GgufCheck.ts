// Checks that a GGUF file is complete and reads what kind of model it is, from its header: magic, version, metadata,
// tensor table, and that the file is as long as its tensors need. Reads some megabytes at most, in pieces, and no
// tensor data.
import { type ByteSource, EndOfFile, FileReader } from "#store/files/FileReader.ts"
import { Damaged, damaged, type GgufMetadata, maxKeys, readMetadata, shortString } from "./GgufMetadata.ts"

/** Facts from the header. */
export interface GgufFacts extends GgufMetadata {
  readonly tensors: number
  /** Values of all its tensors together. */
  readonly parameters: number
}

type GgufFinding = GgufFacts | { readonly problem: string }

/** Values and bytes of a block, by ggml's type number. The sizes of other types are unknown. */
const blockOf: ReadonlyMap<number, readonly [values: number, bytes: number]> = new Map(
  `
    0 1 4; 1 1 2; 2 32 18; 3 32 20; 6 32 22; 7 32 24; 8 32 34; 9 32 36; 10 256 84; 11 256 110
    12 256 144; 13 256 176; 14 256 210; 15 256 292; 16 256 66; 17 256 74; 18 256 98; 19 256 50
    20 32 18; 21 256 110; 22 256 82; 23 256 136; 24 1 1; 25 1 2; 26 1 4; 27 1 8; 28 1 8; 29 256 56
    30 1 2; 34 256 54; 35 256 66; 39 32 17
  `
    .split(/[;\n]/)
    .flatMap((row) => {
      const [type = 0, values = 0, bytes = 0] = row.trim().split(" ").map(Number)
      return bytes === 0 ? [] : [[type, [values, bytes]] as const]
    }),
)

/** Far above any real file; beyond them the header counts as damaged. */
const maxTensors = 1_000_000
const maxDimensions = 8

/** The end of the last tensor, counted from where tensors begin, and how many values they have together. */
const readTensors = async (
  reader: FileReader,
  tensors: number,
): Promise<{ readonly endBytes: number; readonly parameters: number }> => {
  let endBytes = 0
  let parameters = 0
  for (let n = 0; n < tensors; n++) {
    await shortString(reader, "tensor table")
    const dimensions = await reader.uint32()
    if (dimensions > maxDimensions) throw damaged("tensor table")
    let values = 1
    for (let d = 0; d < dimensions; d++) values *= await reader.uint64()
    const block = blockOf.get(await reader.uint32())
    const offset = await reader.uint64()
    const sizeBytes = block === undefined ? 0 : Math.ceil(values / block[0]) * block[1]
    endBytes = Math.max(endBytes, offset + sizeBytes)
    parameters += values
  }
  return { endBytes, parameters }
}

const cutShort = (sizeBytes: number, neededBytes: number): string =>
  `is cut short: it has ${sizeBytes} bytes and needs ${neededBytes}`

const read = async (reader: FileReader): Promise<GgufFinding> => {
  if (reader.sizeBytes === 0) return { problem: "is empty" }
  const magic = await reader.bytes(4)
  if (magic.toString("latin1") !== "GGUF") return { problem: "is not a GGUF file" }
  const version = await reader.uint32()
  if (version === 0x03000000) return { problem: "is a big-endian GGUF file, which is not supported" }
  if (version !== 2 && version !== 3)
    return { problem: `is a GGUF file of version ${version}; 2 and 3 are known` }
  const tensors = await reader.uint64()
  const keys = await reader.uint64()
  if (keys > maxKeys || tensors > maxTensors) throw damaged("header")
  const facts = await readMetadata(reader, keys)
  const { endBytes, parameters } = await readTensors(reader, tensors)
  const begin = Math.ceil(reader.position / facts.alignment) * facts.alignment
  const neededBytes = tensors === 0 ? reader.position : begin + endBytes
  if (neededBytes > reader.sizeBytes) return { problem: cutShort(reader.sizeBytes, neededBytes) }
  return { ...facts, tensors, parameters }
}

const finding = async (reader: FileReader): Promise<GgufFinding> => {
  try {
    return await read(reader)
  } catch (cause) {
    if (cause instanceof EndOfFile)
      return { problem: `is cut short: it ends inside its header, at ${reader.sizeBytes} bytes` }
    if (cause instanceof Damaged) return { problem: cause.message }
    throw cause
  }
}

/** The file's facts, or a problem in words that follow the file's name. Fails with the file system's error. */
export const checkGguf = (path: string): Promise<GgufFinding> => FileReader.over(path, finding)

/** The same for a file elsewhere. Fails with the error of its source. */
export const checkGgufAt = (source: ByteSource): Promise<GgufFinding> => finding(new FileReader(source))

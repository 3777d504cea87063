// Checks that an ONNX file is a complete model and finds the external data files that it needs, from the field lengths
// of its protobuf message. Tensors are skipped, not read.
import { EndOfFile, FileReader } from "#store/files/FileReader.ts"

export interface ExternalData {
  /** As the model names it: a path relative to the model's file. */
  readonly location: string
  /** Minimum length of the data file. */
  readonly neededBytes: number
}

type OnnxFinding = { readonly externalData: ReadonlyArray<ExternalData> } | { readonly problem: string }

/** Field numbers of onnx.proto. */
const model = { irVersion: 1, graph: 7 } as const
const graph = { initializer: 5 } as const
const tensor = { externalData: 13, dataLocation: 14 } as const
const entry = { key: 1, value: 2 } as const
const external = 1

/** Longest key, path or number of an external data entry. */
const maxTextBytes = 4_096

class NotOnnx extends Error {}

const varint = async (reader: FileReader): Promise<number> => {
  let value = 0
  for (let shift = 1; ; shift *= 128) {
    const byte = (await reader.bytes(1))[0]!
    value += (byte & 0x7f) * shift
    if (byte < 0x80) return value
    if (shift > 2 ** 62) throw new NotOnnx()
  }
}

interface Field {
  readonly number: number
  /** End of a length-delimited field. Undefined for a number. */
  readonly endAt: number | undefined
  readonly value: number
}

/** Calls `onField` for each field up to `endAt` and skips what it leaves unread. */
const fields = async (
  reader: FileReader,
  endAt: number,
  onField: (field: Field) => Promise<void> | undefined,
): Promise<void> => {
  while (reader.position < endAt) {
    const tag = await varint(reader)
    const number = Math.floor(tag / 8)
    const wireType = tag % 8
    if (number === 0) throw new NotOnnx()
    if (wireType === 0) await onField({ number, endAt: undefined, value: await varint(reader) })
    else if (wireType === 1) reader.skip(8)
    else if (wireType === 5) reader.skip(4)
    else if (wireType === 2) {
      const length = await varint(reader)
      const end = reader.position + length
      if (end > reader.sizeBytes) throw new EndOfFile(end)
      if (end > endAt) throw new NotOnnx()
      await onField({ number, endAt: end, value: length })
      reader.position = end
    } else throw new NotOnnx()
  }
  if (reader.position > reader.sizeBytes) throw new EndOfFile(reader.position)
}

const text = async (reader: FileReader, { value }: Field): Promise<string> => {
  if (value > maxTextBytes) throw new NotOnnx()
  return (await reader.bytes(value)).toString("utf8")
}

/** One tensor's external data, if it has any. */
const externalOf = async (reader: FileReader, endAt: number): Promise<ExternalData | undefined> => {
  const said = new Map<string, string>()
  let location = 0
  await fields(reader, endAt, async (field) => {
    if (field.number === tensor.dataLocation) location = field.value
    if (field.number !== tensor.externalData || field.endAt === undefined) return
    let key = ""
    let value = ""
    await fields(reader, field.endAt, async (part) => {
      if (part.endAt === undefined) return
      if (part.number === entry.key) key = await text(reader, part)
      if (part.number === entry.value) value = await text(reader, part)
    })
    said.set(key, value)
  })
  if (location !== external) return undefined
  const neededBytes = Number(said.get("offset") ?? 0) + Number(said.get("length") ?? 0)
  return {
    location: said.get("location") ?? "",
    neededBytes: Number.isSafeInteger(neededBytes) ? neededBytes : 0,
  }
}

const read = async (reader: FileReader): Promise<OnnxFinding> => {
  if (reader.sizeBytes === 0) return { problem: "is empty" }
  const needed = new Map<string, number>()
  let version: number | undefined
  let graphs = 0
  await fields(reader, reader.sizeBytes, async (field) => {
    if (field.number === model.irVersion && field.endAt === undefined) version = field.value
    if (field.number !== model.graph || field.endAt === undefined) return
    graphs++
    await fields(reader, field.endAt, async (part) => {
      if (part.number !== graph.initializer || part.endAt === undefined) return
      const data = await externalOf(reader, part.endAt)
      if (data !== undefined)
        needed.set(data.location, Math.max(data.neededBytes, needed.get(data.location) ?? 0))
    })
  })
  if (version === undefined || graphs !== 1) return { problem: "is not an ONNX model" }
  return { externalData: [...needed].map(([location, neededBytes]) => ({ location, neededBytes })) }
}

/** The model's needs, or a problem in words that follow the file's name. Fails with the file system's error. */
export const checkOnnx = (path: string): Promise<OnnxFinding> =>
  FileReader.over(path, async (reader) => {
    try {
      return await read(reader)
    } catch (cause) {
      if (cause instanceof NotOnnx) return { problem: "is not an ONNX model, or is damaged" }
      if (cause instanceof EndOfFile)
        return {
          problem: `is cut short or damaged: it has ${reader.sizeBytes} bytes and needs ${cause.neededBytes}`,
        }
      throw cause
    }
  })

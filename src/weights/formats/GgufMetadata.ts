// Reads the metadata of a GGUF file: what kind of model it is and what decides about its memory. Values that are not used here
// are skipped.
import { EndOfFile, type FileReader } from "#store/files/FileReader.ts"

/** Bytes of a metadata value by type. Strings (8) and arrays (9) have variable lengths. */
const valueBytes: Readonly<Record<number, number>> = {
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
const stringType = 8
const arrayType = 9

/** Far above any real file; beyond them the header counts as damaged. */
export const maxKeys = 100_000
const maxNesting = 4
/** Bytes of a key, an architecture or a tensor name. */
const maxNameBytes = 1_024
/** Values of a list that has one for each layer. */
const maxLayers = 1_024

export class Damaged extends Error {}

export const damaged = (what: string): Damaged => new Damaged(`its ${what} is damaged`)

export const shortString = async (reader: FileReader, what: string): Promise<string> => {
  const length = await reader.uint64()
  if (length > maxNameBytes) throw damaged(what)
  return (await reader.bytes(length)).toString("utf8")
}

const skipString = async (reader: FileReader): Promise<void> => {
  const length = await reader.uint64()
  if (length > reader.sizeBytes) throw new EndOfFile(reader.position + length)
  reader.skip(length)
}

const skipValue = async (reader: FileReader, type: number, depth = 0): Promise<void> => {
  if (type === stringType) return skipString(reader)
  if (type === arrayType) {
    const of = await reader.uint32()
    const length = await reader.uint64()
    const fixed = valueBytes[of]
    if (fixed !== undefined) {
      if (length * fixed > reader.sizeBytes) throw new EndOfFile(reader.position + length * fixed)
      return reader.skip(length * fixed)
    }
    if (depth === maxNesting) throw damaged("metadata")
    // Each value takes at least one byte.
    if (length > reader.sizeBytes) throw new EndOfFile(reader.position + length)
    for (let n = 0; n < length; n++) await skipValue(reader, of, depth + 1)
    return
  }
  const fixed = valueBytes[type]
  if (fixed === undefined) throw damaged("metadata")
  reader.skip(fixed)
}

/** Facts from the metadata. */
export interface GgufMetadata {
  /** `general.architecture`. Undefined if the file has none. */
  readonly architecture: string | undefined
  /** `general.type`, e.g. `model`, `adapter`, `mmproj`. */
  readonly type: string | undefined
  /** `general.name`: the model's name in its publisher's words. */
  readonly name: string | undefined
  /** `general.license`. */
  readonly licence: string | undefined
  /** `general.file_type`: the number of its quantisation in llama.cpp's numbering. */
  readonly fileType: number | undefined
  /** Number of files that the model is split into. */
  readonly parts: number
  /** Tokens of the longest context that the model was trained for. */
  readonly contextTokens: number | undefined
  /** Bytes of the keys and values of one token in all layers, with 16 bits a value. Undefined if the file does not say. */
  readonly tokenBytes: number | undefined
  /** `{architecture}.pooling_type`: given by models that make embeddings, in the numbering of llama.cpp. */
  readonly pooling: number | undefined
  readonly hasChatTemplate: boolean
  /** `clip.projector_type` of an mmproj file. */
  readonly projector: string | undefined
  readonly alignment: number
}

/** Texts that are kept. */
const textKeys = [
  "general.architecture",
  "general.type",
  "general.name",
  "general.license",
  "clip.projector_type",
  "clip.vision.projector_type",
]

/** Numbers that are kept, with or without the architecture before them. */
const numberKey =
  /^(?:general\.(?:alignment|file_type)|split\.count|[^.]+\.(?:context_length|block_count|embedding_length|pooling_type|attention\.(?:head_count(?:_kv)?|key_length|value_length)))$/

const readNumber = async (reader: FileReader, type: number): Promise<number | undefined> => {
  switch (type) {
    case 0:
      return (await reader.bytes(1)).readUInt8()
    case 2:
      return (await reader.bytes(2)).readUInt16LE()
    case 4:
      return reader.uint32()
    case 5:
      return (await reader.bytes(4)).readInt32LE()
    case 10:
    case 11:
      return reader.uint64()
    default:
      await skipValue(reader, type)
      return undefined
  }
}

/** A number, or the sum of a list with one for each layer and the length of that list. */
const readCount = async (
  reader: FileReader,
  type: number,
): Promise<{ readonly sum: number; readonly of: number } | undefined> => {
  if (type !== arrayType) {
    const value = await readNumber(reader, type)
    return value === undefined ? undefined : { sum: value, of: 1 }
  }
  const of = await reader.uint32()
  const length = await reader.uint64()
  if (length > maxLayers || valueBytes[of] === undefined) throw damaged("metadata")
  let sum = 0
  for (let n = 0; n < length; n++) sum += (await readNumber(reader, of)) ?? 0
  return { sum, of: length }
}

interface Counts {
  readonly get: (key: string) => { readonly sum: number; readonly of: number } | undefined
}

const bytesOfToken = (counts: Counts, architecture: string): number | undefined => {
  const one = (key: string): number | undefined => counts.get(`${architecture}.${key}`)?.sum
  const layers = one("block_count")
  const heads = counts.get(`${architecture}.attention.head_count`)
  const keyValue = counts.get(`${architecture}.attention.head_count_kv`) ?? heads
  if (layers === undefined || heads === undefined || keyValue === undefined || heads.sum === 0)
    return undefined
  const width = (one("embedding_length") ?? 0) / (heads.sum / heads.of)
  const values = (one("attention.key_length") ?? width) + (one("attention.value_length") ?? width)
  const headsOfLayers = keyValue.of > 1 ? keyValue.sum : keyValue.sum * layers
  return Math.round(headsOfLayers * values * 2)
}

/** Reads `keys` pairs of a key and a value. */
export const readMetadata = async (reader: FileReader, keys: number): Promise<GgufMetadata> => {
  const texts = new Map<string, string>()
  const counts = new Map<string, { readonly sum: number; readonly of: number }>()
  let hasChatTemplate = false
  for (let n = 0; n < keys; n++) {
    const key = await shortString(reader, "metadata")
    const type = await reader.uint32()
    if (type === stringType && textKeys.includes(key)) texts.set(key, await shortString(reader, "metadata"))
    else if (numberKey.test(key)) {
      const count = await readCount(reader, type)
      if (count !== undefined) counts.set(key, count)
    } else {
      if (key === "tokenizer.chat_template") hasChatTemplate = true
      await skipValue(reader, type)
    }
  }
  const alignment = counts.get("general.alignment")?.sum ?? 32
  if (alignment === 0 || alignment > 1 << 20) throw damaged("metadata")
  const architecture = texts.get("general.architecture")
  return {
    architecture,
    type: texts.get("general.type"),
    name: texts.get("general.name"),
    licence: texts.get("general.license"),
    fileType: counts.get("general.file_type")?.sum,
    parts: counts.get("split.count")?.sum ?? 1,
    contextTokens: architecture === undefined ? undefined : counts.get(`${architecture}.context_length`)?.sum,
    tokenBytes: architecture === undefined ? undefined : bytesOfToken(counts, architecture),
    pooling: architecture === undefined ? undefined : counts.get(`${architecture}.pooling_type`)?.sum,
    hasChatTemplate,
    projector: texts.get("clip.projector_type") ?? texts.get("clip.vision.projector_type"),
    alignment,
  }
}

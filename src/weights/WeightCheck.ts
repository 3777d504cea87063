// Checks one weight file of a catalog entry without loading it: missing, cut short, of another format or kind than the
// entry's, or with another SHA-256 than the catalog's.
import { open, realpath, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { basename, dirname, isAbsolute, join } from "node:path"
import type { FileVersion } from "#domain/models/Deployment.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { isWithin } from "#domain/process/Confinement.ts"
import { adapterFacts, type ModelFormat } from "#engines/AdapterFacts.ts"
import { sumOf } from "#store/files/FileSums.ts"
import { checkGguf, type GgufFacts } from "./formats/GgufCheck.ts"
import { checkOnnx, type ExternalData } from "./formats/OnnxCheck.ts"

interface WeightToCheck {
  readonly entry: Pick<ModelEntry, "adapter" | "kind">
  readonly role: string
  /** Absolute. */
  readonly path: string
  /** The expected sum, lower-case hex. Without it no sum is computed. */
  readonly sha256?: string | undefined
}

/** Architectures that are not text models, and what they are. Names from llama.cpp and stable-diffusion.cpp. */
const otherArchitectures: Readonly<Record<string, string>> = {
  clip: "an image or audio encoder",
  mmproj: "an image or audio encoder",
  whisper: "a transcription model",
  bert: "an embedding model",
  "nomic-bert": "an embedding model",
  "nomic-bert-moe": "an embedding model",
  "modern-bert": "an embedding model",
  "neo-bert": "an embedding model",
  "jina-bert-v2": "an embedding model",
  "jina-bert-v3": "an embedding model",
  "gemma-embedding": "an embedding model",
  "llama-embed": "an embedding model",
  t5encoder: "a text encoder",
  "wavtokenizer-dec": "a sound decoder",
  flux: "an image model",
  sd1: "an image model",
  sd3: "an image model",
  sdxl: "an image model",
}

const otherTypes: Readonly<Record<string, string>> = {
  adapter: "an adapter to another model",
  mmproj: "an image or audio encoder",
  imatrix: "an importance matrix",
  vocab: "a vocabulary without weights",
}

/** The format in which the adapter reads the file. Undefined for small files that the adapter parses itself. */
const formatOf = ({ entry, path }: WeightToCheck): ModelFormat | undefined => {
  const format = adapterFacts[entry.adapter]?.format
  // All files of a GGUF adapter are GGUF files. An ONNX adapter also has small files, so there the name decides.
  if (format === "gguf") return "gguf"
  if (path.endsWith(".onnx")) return "onnx"
  return path.endsWith(".gguf") ? (format ?? "gguf") : undefined
}

/** The format that the first bytes show. */
const shownFormat = async (path: string): Promise<string | undefined> => {
  const file = await open(path, "r")
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(16), 0, 16, 0)
    const head = buffer.subarray(0, bytesRead)
    if (head.subarray(0, 4).toString("latin1") === "GGUF") return "a GGUF file"
    // Field 1 (ir_version) as a number, then a later field: every exporter begins an ONNX model like this.
    if (head[0] === 0x08 && head[1]! < 0x20 && [0x12, 0x3a].includes(head[2] ?? 0)) return "an ONNX model"
    if (head.subarray(0, 2).toString("latin1") === "PK") return "a ZIP archive"
    if (/^version https:/.test(head.toString("latin1"))) return "a Git LFS pointer instead of the file"
    return undefined
  } finally {
    await file.close()
  }
}

const otherKind = ({ architecture, type }: GgufFacts): string | undefined => {
  const named = architecture === undefined ? undefined : otherArchitectures[architecture]
  if (named !== undefined) return `${architecture}, ${named}`
  const typed = type === undefined ? undefined : otherTypes[type]
  return typed === undefined ? undefined : `${architecture ?? "unnamed"}, ${typed}`
}

/** What a weight file's content shows: a problem in words that follow the file's name, or what `CheckedWeight` says of it. */
type Content =
  | { readonly problem: string }
  | { readonly parts: ReadonlyArray<string>; readonly parameters: number }

/** `NAME-00001-of-00003.gguf`: the other parts are beside it under these names. */
const ggufParts = async (path: string, first: GgufFacts): Promise<Content> => {
  const { parts: count } = first
  if (count <= 1) return { parts: [], parameters: first.parameters }
  const name = /^(.*)-\d{5}-of-(\d{5})\.gguf$/.exec(basename(path))
  if (name === null)
    return { problem: `is one of ${count} parts, but its name does not end with -00001-of-0000N.gguf` }
  const parts: Array<string> = []
  let parameters = 0
  for (let n = 1; n <= count; n++) {
    const part = `${name[1]}-${String(n).padStart(5, "0")}-of-${name[2]}.gguf`
    parts.push(join(dirname(path), part))
    const found = await checkGguf(parts.at(-1)!).catch(() => ({ problem: "is not there" }))
    if ("problem" in found) return { problem: `is one of ${count} parts, and ${part} ${found.problem}` }
    parameters += found.parameters
  }
  return { parts, parameters }
}

const ggufContent = async ({ entry, path, role }: WeightToCheck): Promise<Content> => {
  const found = await checkGguf(path)
  if ("problem" in found) return found
  const other = role === "weights" && entry.kind === "text" ? otherKind(found) : undefined
  if (other !== undefined)
    return { problem: `is a GGUF of architecture ${other}, but the entry's kind is ${entry.kind}` }
  if (role === "mmproj" && found.architecture !== "clip")
    return {
      problem: `is a GGUF of architecture ${found.architecture ?? "unnamed"}, but an mmproj file has clip`,
    }
  if (found.tensors === 0) return { problem: "has no tensors" }
  return ggufParts(path, found)
}

const dataProblem = async (path: string, { location, neededBytes }: ExternalData) => {
  const names = location.split(/[\\/]/)
  // ONNX Runtime refuses a path outside the model's folder.
  if (location === "" || location.startsWith("/") || names.includes(".."))
    return "names its external data by a path outside of its folder"
  // The engine may read what the graph names. Beside weights in a home directory, hidden files are keys and settings.
  if (names.some((name) => name.startsWith(".") && name !== "."))
    return "names a hidden file as its external data"
  const info = await stat(join(dirname(path), location)).catch(() => undefined)
  if (info === undefined) return `needs ${location} beside it, which is not there`
  return info.size < neededBytes
    ? `needs ${location} beside it, which is cut short: it has ${info.size} bytes and needs ${neededBytes}`
    : undefined
}

const onnxContent = async ({ path }: WeightToCheck): Promise<Content> => {
  const found = await checkOnnx(path)
  if ("problem" in found) return found
  for (const data of found.externalData) {
    const problem = await dataProblem(path, data)
    if (problem !== undefined) return { problem }
  }
  const parts = found.externalData.map(({ location }) => join(dirname(path), location))
  // Not counted: among the tensors of a graph are tables that no training made, such as those of a Fourier transform.
  return { parts, parameters: 0 }
}

const contentOf = async (weight: WeightToCheck): Promise<Content> => {
  const format = formatOf(weight)
  if (format === undefined) return { parts: [], parameters: 0 }
  const wanted = format === "gguf" ? "a GGUF file" : "an ONNX model"
  const shown = await shownFormat(weight.path)
  if (shown !== undefined && shown !== wanted)
    return { problem: `is ${shown}, but the adapter ${weight.entry.adapter} reads ${wanted} here` }
  return format === "gguf" ? ggufContent(weight) : onnxContent(weight)
}

/** An engine may read all of a folder that its entry names. */
const openFolder = async (path: string): Promise<string | undefined> =>
  isAbsolute(homedir()) && isWithin(await realpath(path), await realpath(homedir()).catch(() => homedir()))
    ? "is or contains the home directory, and an engine may read all of the folder: put its files in a folder of their own"
    : undefined

const codeOf = (cause: unknown): string => (cause as NodeJS.ErrnoException).code ?? "unknown error"

interface CheckedWeight {
  /** In words that follow the file's name. Undefined if nothing is wrong. */
  readonly problem: string | undefined
  /** Absolute paths of the files that it names: parts of a split GGUF, external data of an ONNX graph. */
  readonly parts: ReadonlyArray<string>
  /** Values of the tensors of a GGUF and of its parts; 0 for other files, and where something is wrong. */
  readonly parameters: number
  /** The file's version, with its sum if one was computed. Undefined if there is no file. */
  readonly version: FileVersion | undefined
}

const nothing: Pick<CheckedWeight, "parameters" | "parts"> = { parts: [], parameters: 0 }

export const checkWeight = async (weight: WeightToCheck): Promise<CheckedWeight> => {
  const { path, sha256 } = weight
  let version: FileVersion | undefined
  try {
    const info = await stat(path)
    version = { sizeBytes: info.size, modifiedMs: info.mtimeMs, sha256: undefined }
    if (info.isDirectory()) {
      const needsFile = formatOf(weight) !== undefined || sha256 !== undefined
      const problem = needsFile ? "is a folder, not a file" : await openFolder(path)
      return { problem, ...nothing, version }
    }
    const content = await contentOf(weight)
    if ("problem" in content) return { ...content, ...nothing, version }
    const { parameters, parts } = content
    if (sha256 === undefined) return { problem: undefined, parts, parameters, version }
    const actual = await sumOf(path, info)
    return {
      problem: actual === sha256 ? undefined : `has SHA-256 ${actual}, the catalog says ${sha256}`,
      parts,
      parameters,
      version: { ...version, sha256: actual },
    }
  } catch (cause) {
    const code = codeOf(cause)
    return { problem: code === "ENOENT" ? "is not there" : `cannot be read (${code})`, ...nothing, version }
  }
}

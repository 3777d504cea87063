// What `models add` was given: a preset's name, `hf:owner/repo[@revision][/file]`, or a path on this machine; and the
// repository that it means.
import { statSync } from "node:fs"
import { basename, dirname, resolve } from "node:path"
import { Effect } from "effect"
import { suggestion } from "#domain/models/NearestName.ts"
import type { Choice } from "#weights/found/FoundModel.ts"
import { listFolder } from "#weights/found/HubFolder.ts"
import { hubRepository, localRepository, NotUsable, type Repository } from "#weights/found/Repository.ts"
import type { Preset } from "#weights/presets/Preset.ts"
import { presetNamed, presets } from "#weights/presets/Presets.ts"
import { hubHere } from "./PullHere.ts"

export interface WeightsSource {
  readonly repository: Repository
  readonly choice: Omit<Choice, "memoryBytes">
  /** Id of the entry if none is given. */
  readonly name: string
  readonly preset?: Preset
}

const part = "[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
const hubPattern = new RegExp(`^hf:(${part}/${part})(?:@(${part}))?(?:/(${part}(?:/${part}){0,15}))?$`)

/** A model's id made from a file's or repository's name. */
const idOf = (name: string): string => {
  const bare = name
    .replace(/\.gguf$/i, "")
    .replace(/[-._](?:I?Q\d(?:_[0-9A-Z]+)*|BF16|F16|F32)$/i, "")
    .replace(/[-._](?:GGUF|ONNX)$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, 100)
  return bare === "" ? "model" : bare
}

const onHub = (repo: string, revision: string) =>
  Effect.flatMap(hubHere, (hub) =>
    Effect.map(listFolder(hub, repo, revision), (folder) => hubRepository(hub, folder)),
  )

const fromPreset = Effect.fnUntraced(function* (preset: Preset, file: string | undefined) {
  const repository = yield* onHub(preset.repository, "main")
  return {
    repository,
    choice: { file: file ?? preset.file, precisions: preset.precisions },
    name: preset.name,
    preset,
  }
})

const fromHub = Effect.fnUntraced(function* (source: string, file: string | undefined) {
  const match = hubPattern.exec(source)
  if (match === null || source.includes("..")) {
    const problem = "is not hf:owner/repo, hf:owner/repo@revision or hf:owner/repo/file.gguf"
    return yield* new NotUsable({ source, problem })
  }
  const [, repo = "", revision = "main", path] = match
  const named = file ?? path
  const repository = yield* onHub(repo, revision)
  const isFile = named !== undefined && /\.gguf$/i.test(named)
  return { repository, choice: { file: named }, name: idOf(isFile ? basename(named) : repository.name) }
})

const fromDisk = Effect.fnUntraced(function* (path: string, isFolder: boolean, file: string | undefined) {
  const folder = isFolder ? path : dirname(path)
  const repository = yield* localRepository(folder, { deep: isFolder })
  const named = isFolder ? file : basename(path)
  if (!isFolder && !/\.gguf$/i.test(path))
    return yield* new NotUsable({
      source: path,
      problem: "is not a .gguf file; of an ONNX export, name the folder",
    })
  const isFile = named !== undefined && /\.gguf$/i.test(named)
  return { repository, choice: { file: named }, name: idOf(isFile ? basename(named) : basename(folder)) }
})

/** Whether the text means a path: it begins like one or is there. */
const pathInfo = (source: string) => {
  try {
    return statSync(resolve(source))
  } catch {
    return undefined
  }
}

/** @param file chosen on the command line: a path in the repository, or a quantisation */
export const weightsSource = Effect.fnUntraced(function* (source: string, file: string | undefined) {
  if (source.startsWith("hf:")) return yield* fromHub(source, file)
  const preset = presetNamed(source)
  if (preset !== undefined) return yield* fromPreset(preset, file)
  const info = pathInfo(source)
  if (info !== undefined) return yield* fromDisk(resolve(source), info.isDirectory(), file)
  if (/^[./~]|\.gguf$/i.test(source))
    return yield* new NotUsable({ source, problem: "there is no such file or folder" })
  const names = presets.map(({ name }) => name)
  const problem = `is no preset${suggestion(source, names)}; edgewise models presets lists them, hf:owner/repo takes any other`
  return yield* new NotUsable({ source, problem })
})

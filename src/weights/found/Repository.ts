// A place with the files of a model: a repository on a hub, or a folder on this machine. What a model is, is found out from
// its own files, the same way in both.
import { readdir, readFile, stat } from "node:fs/promises"
import { basename, join } from "node:path"
import { Effect, Schema } from "effect"
import { sourceOf } from "#domain/models/HubFile.ts"
import type { WeightFile } from "#domain/models/ModelEntry.ts"
import { checkGguf, checkGgufAt, type GgufFacts } from "../formats/GgufCheck.ts"
import type { Hub } from "../HubClient.ts"
import { HubRefused, HubSilent, PullCorrupt } from "../PullErrors.ts"
import { type HubFolder, type ListError, type ListedFile, readSmall, remoteFile } from "./HubFolder.ts"

/** Without what a terminal would obey: texts of files from elsewhere are shown. */
const printable = (text: string): string => text.replace(/\p{C}|\p{Zl}|\p{Zp}/gu, "?")

/** The weights cannot be used. `message` says why and what to do. */
export class NotUsable extends Schema.TaggedError<NotUsable>()("NotUsable", {
  source: Schema.String,
  problem: Schema.String,
}) {
  override get message() {
    return printable(`${this.source}: ${this.problem}`)
  }
}

export type FoundError = ListError | NotUsable

export interface Repository {
  /** In errors. */
  readonly source: string
  /** Its name without its owner. */
  readonly name: string
  readonly owner: string
  readonly licence: string | undefined
  readonly files: ReadonlyArray<ListedFile>
  /** How a catalog entry names one of its files. */
  readonly sourceOf: (path: string) => string
  readonly readText: (path: string) => Effect.Effect<string, FoundError>
  /** Facts of a GGUF file, which is not read further than its header. */
  readonly gguf: (file: ListedFile) => Effect.Effect<GgufFacts, FoundError>
}

const isListError = (cause: unknown): cause is ListError =>
  cause instanceof HubRefused || cause instanceof HubSilent || cause instanceof PullCorrupt

const headerOf = (
  source: string,
  read: () => ReturnType<typeof checkGguf>,
): Effect.Effect<GgufFacts, FoundError> =>
  Effect.tryPromise({
    try: read,
    catch: (cause) =>
      isListError(cause)
        ? cause
        : new NotUsable({ source, problem: cause instanceof Error ? cause.message : String(cause) }),
  }).pipe(
    Effect.flatMap((found) =>
      "problem" in found
        ? Effect.fail(
            new NotUsable({ source, problem: `${found.problem}; choose another file, or get it again` }),
          )
        : Effect.succeed(found),
    ),
  )

export const hubRepository = (hub: Hub, folder: HubFolder): Repository => {
  const { commit, files, licence, repo } = folder
  const at = (path: string) => ({ repo, revision: commit, path })
  const [owner = "", name = ""] = repo.split("/")
  return {
    source: `hf:${repo}`,
    name,
    owner,
    licence,
    files,
    sourceOf: (path) => sourceOf(at(path)),
    readText: (path) => Effect.map(readSmall(hub, at(path)), (bytes) => bytes.toString("utf8")),
    gguf: (file) => {
      const source = sourceOf(at(file.path))
      return file.sizeBytes === undefined
        ? Effect.fail(new NotUsable({ source, problem: "the hub does not say how large it is" }))
        : headerOf(source, () => checkGgufAt(remoteFile(hub, at(file.path), file.sizeBytes ?? 0)))
    },
  }
}

/** Deepest folder that is looked into: exports have `onnx/` and `voices/`. */
const maxDepth = 2
/** Files of a folder that is looked into. A guess: a folder with more is no export of one model. */
const maxFiles = 2_000

const filesBelow = async (folder: string, deepest: number): Promise<ReadonlyArray<ListedFile>> => {
  const found: Array<ListedFile> = []
  const walk = async (path: string, prefix: string, depth: number): Promise<void> => {
    for (const entry of await readdir(path, { withFileTypes: true })) {
      if (found.length >= maxFiles) return
      const name = `${prefix}${entry.name}`
      const inner = join(path, entry.name)
      const info = await stat(inner).catch(() => undefined)
      if (info?.isDirectory() === true && depth < deepest) await walk(inner, `${name}/`, depth + 1)
      if (info?.isFile() === true) found.push({ path: name, sizeBytes: info.size, sha256: undefined })
    }
  }
  await walk(folder, "", 0)
  return found
}

/**
 * A folder on this machine, with the folders in it or without.
 * @param folder absolute
 */
export const localRepository = (
  folder: string,
  { deep }: { readonly deep: boolean },
): Effect.Effect<Repository, NotUsable> => {
  const unreadable = (path: string) => (cause: unknown) =>
    new NotUsable({ source: path, problem: cause instanceof Error ? cause.message : String(cause) })
  return Effect.tryPromise({
    try: () => filesBelow(folder, deep ? maxDepth : 0),
    catch: unreadable(folder),
  }).pipe(
    Effect.map((files) => ({
      source: folder,
      name: basename(folder),
      owner: "local",
      licence: undefined,
      files,
      sourceOf: (path: string) => join(folder, path),
      readText: (path: string) =>
        Effect.tryPromise({
          try: () => readFile(join(folder, path), "utf8"),
          catch: unreadable(join(folder, path)),
        }),
      gguf: ({ path }: ListedFile) => headerOf(join(folder, path), () => checkGguf(join(folder, path))),
    })),
  )
}

/** A file of a repository in a catalog entry. */
export const expectedFile = (
  repository: Repository,
  { path, sha256, sizeBytes }: ListedFile,
): WeightFile => ({
  source: repository.sourceOf(path),
  ...(sha256 === undefined ? {} : { sha256 }),
  ...(sizeBytes === undefined ? {} : { sizeBytes }),
})

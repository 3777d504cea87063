// The folder of the data directory where child processes keep compiled code (Node's compile cache). It is accessible to
// its owner only, because code in it runs in the engines. Without it, processes only start more slowly.
import { chmodSync, readdirSync, rmSync, statfsSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Layer } from "effect"
import { CompileCache } from "#domain/models/CompileCache.ts"
import { makeDir, problemOf } from "./DataDir.ts"

/**
 * Node keeps one file per module, in a folder per Node version: about 1,100 files and 7 MB once every engine has
 * started (measured). With more files than this, the installation has moved often, and the whole folder is emptied.
 */
const maxFiles = 5_000

/** The names of Node's folders begin with its version and processor architecture; V8's flags and the user id follow. */
const isOfThisNode = (name: string): boolean => name.startsWith(`${process.version}-${process.arch}-`)

/** Creates the folder and removes what other versions of Node left. Throws if that fails. */
const prepare = (dataDir: string): string => {
  const folder = join(resolve(dataDir), "compiled")
  makeDir(folder)
  chmodSync(folder, 0o700)
  let files = 0
  for (const name of readdirSync(folder)) {
    const versioned = join(folder, name)
    if (!isOfThisNode(name)) rmSync(versioned, { recursive: true, force: true })
    else files += readdirSync(versioned).length
  }
  if (files > maxFiles)
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
  return folder
}

/**
 * Free disk space below which the cache is off: on a full disk Node leaves an empty file per module at every start. A
 * guess, ten times what the cache fills.
 */
const minFreeBytes = 64 * 1024 * 1024

const hasFreeSpace = (folder: string): boolean => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= minFreeBytes
  } catch {
    return false
  }
}

/** Provides the folder to the layers below. If it cannot be made, this is logged and the cache is off. */
export const compiledCode = (dataDir: string): Layer.Layer<never> =>
  Layer.effect(
    CompileCache,
    Effect.try({ try: () => prepare(dataDir), catch: problemOf }).pipe(
      Effect.map((folder) => () => (hasFreeSpace(folder) ? folder : undefined)),
      Effect.catch((problem) =>
        Effect.as(
          Effect.logWarning("compiled code is not kept").pipe(Effect.annotateLogs({ problem })),
          () => undefined,
        ),
      ),
    ),
  )

// The folder of the data directory where child processes keep compiled code (Node's compile cache). Made when a node
// starts. Whoever can write there can make engines run what he likes, so it is the owner's alone, as the directory is.
// Nothing in it is missed: without it processes start a little slower.
import { chmodSync, readdirSync, rmSync, statfsSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Layer } from "effect"
import { CompileCache } from "#domain/models/CompileCache.ts"
import { makeDir, problemOf } from "./DataDir.ts"

/**
 * Node keeps a file a module, in a folder for each version of itself: about 1,100 files and 7 MB with every engine
 * started once (measured). Beyond this an installation has moved often, and all of it goes.
 */
const mostFiles = 5_000

/** Node's folders begin with its version and the processor; flags of V8 and the user follow. */
const isOurs = (name: string): boolean => name.startsWith(`${process.version}-${process.arch}-`)

/** Makes the folder and clears away what other versions of Node have left. Throws where that cannot be done. */
const prepare = (dataDir: string): string => {
  const folder = join(resolve(dataDir), "compiled")
  makeDir(folder)
  chmodSync(folder, 0o700)
  let files = 0
  for (const name of readdirSync(folder)) {
    const versioned = join(folder, name)
    if (!isOurs(name)) rmSync(versioned, { recursive: true, force: true })
    else files += readdirSync(versioned).length
  }
  if (files > mostFiles)
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
  return folder
}

/**
 * Free space without which nothing is kept: on a full disk Node leaves an empty file a module behind, at every start. A
 * guess, ten times what it fills.
 */
const roomBytes = 64 * 1024 * 1024

const hasRoom = (folder: string): boolean => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= roomBytes
  } catch {
    return false
  }
}

/** Gives the folder to everything below it; nothing where it cannot be had, which is logged and is no failure. */
export const compiledCode = (dataDir: string): Layer.Layer<never> =>
  Layer.effect(
    CompileCache,
    Effect.try({ try: () => prepare(dataDir), catch: problemOf }).pipe(
      Effect.map((folder) => () => (hasRoom(folder) ? folder : undefined)),
      Effect.catch((problem) =>
        Effect.as(
          Effect.logWarning("compiled code is not kept").pipe(Effect.annotateLogs({ problem })),
          () => undefined,
        ),
      ),
    ),
  )

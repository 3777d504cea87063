// The folder of the data directory where child processes have their own folders. It is emptied when a node starts: what
// it holds was left by processes that were killed with their node. The data directory's lock makes this safe.
import { randomUUID } from "node:crypto"
import { chmodSync, linkSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Layer } from "effect"
import { CurrentProcessHome, type ProcessHome } from "#domain/process/ProcessHome.ts"
import { makeDir, problemOf } from "./DataDir.ts"
import { StoreUnavailable } from "./StoreErrors.ts"

const hasLinks = (folder: string): boolean => {
  const file = join(folder, randomUUID())
  try {
    writeFileSync(file, "")
    linkSync(file, `${file}.link`)
    return true
  } catch {
    return false
  } finally {
    rmSync(file, { force: true })
    rmSync(`${file}.link`, { force: true })
  }
}

const prepare = (dataDir: string, rings: string): ProcessHome => {
  const folder = join(dataDir, "processes")
  for (const each of [folder, rings]) {
    makeDir(each)
    chmodSync(each, 0o700)
  }
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
  return { folder, links: hasLinks(folder), rings, closed: [dataDir] }
}

/** @param rings folder of decoded audio, in the data directory */
export const processHome = (dataDir: string, rings: string): Layer.Layer<never, StoreUnavailable> =>
  Layer.effect(
    CurrentProcessHome,
    Effect.try({
      try: () => prepare(resolve(dataDir), resolve(rings)),
      catch: (cause) => new StoreUnavailable({ place: dataDir, problem: problemOf(cause) }),
    }),
  )

// Reads the cores that this machine and container give this process; see MachineCores.
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { type MachineCores, machineCores } from "#domain/threads/MachineCores.ts"

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

export const readCores = (): MachineCores => machineCores(readText, availableParallelism())

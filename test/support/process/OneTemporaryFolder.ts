// Before the tests: all temporary files of a run lie in one folder, which is removed with the run, also after kills and failures; and
// the programs that tests start are made (Programs.ts).
// vitest calls it around the whole run; its workers inherit the variables.
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { compiledVariable, programsVariable } from "./CompiledCode.ts"
import { makePrograms } from "./Programs.ts"

/** A process that ends may still write compiled code: what comes after the folder was listed is removed by the next attempt. */
const remove = async (folder: string): Promise<void> => {
  for (let attempt = 1; attempt <= 10; attempt++) {
    try {
      return rmSync(folder, { recursive: true, force: true })
    } catch (error) {
      // What the tests have shown does not depend on it.
      if (attempt === 10) console.warn(`${folder} is left: ${error}`)
      else await setTimeout(100 * attempt)
    }
  }
}

export default async (): Promise<() => Promise<void>> => {
  const folder = mkdtempSync(join(tmpdir(), "edgewise-run-"))
  // Servers that refuse root run as another user and must be able to enter the folder.
  chmodSync(folder, 0o711)
  process.env.TMPDIR = folder
  const compiled = join(folder, "compiled")
  mkdirSync(compiled, { mode: 0o700 })
  process.env[compiledVariable] = compiled
  process.env[programsVariable] = await makePrograms()
  return () => remove(folder)
}

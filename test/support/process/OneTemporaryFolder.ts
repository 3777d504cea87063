// All temporary files of a test run lie in one folder, which is removed with the run, also after kills and failures.
// vitest calls it around the whole run; its workers inherit the variables.
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { compiledVariable } from "./CompiledCode.ts"

export default (): (() => void) => {
  const folder = mkdtempSync(join(tmpdir(), "edgewise-run-"))
  // Servers that refuse root run as another user and must be able to enter the folder.
  chmodSync(folder, 0o711)
  process.env.TMPDIR = folder
  const compiled = join(folder, "compiled")
  mkdirSync(compiled, { mode: 0o700 })
  process.env[compiledVariable] = compiled
  // A process that ends may still write compiled code.
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
}

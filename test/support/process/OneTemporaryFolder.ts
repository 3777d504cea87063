// Everything that a test run leaves among temporary files lies in one folder, which goes with the run, whatever was
// killed or failed meanwhile. vitest calls it around the whole run; its workers inherit the variable.
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export default (): (() => void) => {
  const folder = mkdtempSync(join(tmpdir(), "edgewise-run-"))
  // Servers that refuse root run as somebody else and pass through it.
  chmodSync(folder, 0o711)
  process.env.TMPDIR = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

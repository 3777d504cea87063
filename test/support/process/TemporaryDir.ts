// A directory for one test, in the system's temporary folder (see OneTemporaryFolder).
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const temporaryDir = (): { readonly path: string; readonly remove: () => void } => {
  const path = mkdtempSync(join(tmpdir(), "edgewise-test-"))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

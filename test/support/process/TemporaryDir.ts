// A directory for one test, in the system's temporary folder (see OneTemporaryFolder).
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const temporaryDir = (): { readonly path: string; readonly remove: () => void } => {
  const path = mkdtempSync(join(tmpdir(), "edgewise-test-"))
  // Again where a process that was killed has left others, which end with it and still write.
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 10 }) }
}

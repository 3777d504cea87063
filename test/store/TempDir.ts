// A directory of its own for each test, removed with its scope.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

export const tempDir = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "edgewise-store-"))),
  (dir) => Effect.sync(() => rmSync(dir, { recursive: true, force: true })),
)

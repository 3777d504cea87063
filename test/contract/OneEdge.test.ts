// One data directory, one edge: a second would remove the first one's uploads, so it is refused with one line.
import { rmSync } from "node:fs"
import { expect, it } from "vitest"
import { startNode, temporaryDir } from "../support/TestNode.ts"

it("a second edge on a data directory is refused, and the first serves on; when it has ended, another starts", async () => {
  const dir = temporaryDir()
  const dataDir = `${dir.path}/data`
  const first = await startNode({ dataDir })
  await expect(startNode({ dataDir })).rejects.toThrow(
    /is used by another edge process; give this one a data directory of its own \(EDGEWISE_DATA_DIR\)/,
  )
  expect((await first.fetch("/health")).status).toBe(200)
  await first.stop()
  const second = await startNode({ dataDir })
  expect((await second.fetch("/health")).status).toBe(200)
  await second.stop()
  rmSync(dir.path, { recursive: true, force: true })
})

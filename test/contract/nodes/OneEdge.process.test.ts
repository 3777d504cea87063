// One data directory, one edge: a second would remove the first one's uploads, so it is refused with one line.
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { expect, it } from "vitest"
import { startNode, temporaryDir } from "../../support/nodes/TestNode.ts"

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

it("clears at its start what a crash has left among the uploads, reference clips included", async () => {
  const dir = temporaryDir()
  const dataDir = `${dir.path}/data`
  const clip = `${dataDir}/uploads/edgewise-clip-of-a-crash`
  mkdirSync(`${dataDir}/uploads`, { recursive: true })
  writeFileSync(clip, "a voice")
  const node = await startNode({ dataDir })
  expect(existsSync(clip)).toBe(false)
  await node.stop()
  dir.remove()
})

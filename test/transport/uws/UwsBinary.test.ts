// The transport's native code has the checksum that was verified; any other is not loaded.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { uwsBinary, uwsProblem, uwsTarget } from "#transport/uws/UwsBinary.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-uws-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("is known for every machine that the program runs on", async () => {
  for (const system of ["linux", "darwin"])
    for (const processor of ["x64", "arm64"])
      for (const abi of [115, 120, 127]) {
        const target = `${system}_${processor}_${abi}`
        expect(await uwsProblem(uwsBinary(target), target)).toBeUndefined()
      }
  expect(await uwsProblem(uwsBinary(), "plan9_x64_127")).toBe(
    "uWebSockets.js has no checked binary for plan9_x64_127",
  )
})

it("is refused where one byte is another", async () => {
  const changed = readFileSync(uwsBinary())
  changed.writeUInt8(changed.readUInt8(100_000) ^ 1, 100_000)
  const path = join(folder, "changed.node")
  writeFileSync(path, changed)
  expect(await uwsProblem(path)).toMatch(
    new RegExp(`^uWebSockets.js: the binary for ${uwsTarget} has SHA-256 [0-9a-f]{64}, and not`),
  )
})

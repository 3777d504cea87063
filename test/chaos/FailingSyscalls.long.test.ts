// Syscalls that fail under a running node: a full disk beneath its data directory, and no file descriptors left. Requests
// fail cleanly or are served, the node keeps running, stored data is intact, and all works once disk space is free again.
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, describe, expect, it } from "vitest"
import { RawConnection } from "../support/clients/RawHttp.ts"
import { whisper } from "../support/clients/TranscriptionClient.ts"
import { mountNeedsRoot, needs, onlyWhere } from "../support/groups/Needs.ts"
import { type NodeProcess, startProcess } from "../support/nodes/NodeProcess.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually } from "../support/nodes/TestNode.ts"

const post = (node: NodeProcess, path: string, body: string, type = "application/json") =>
  fetch(node.base + path, {
    method: "POST",
    headers: { authorization: `Bearer ${node.devKey}`, "content-type": type },
    body,
  })
const chatBody = JSON.stringify({ model: "fake", messages: [{ role: "user", content: "hi" }] })
const chat = (node: NodeProcess) => post(node, "/v1/chat/completions", chatBody)
const health = async (node: NodeProcess) =>
  ((await (await fetch(`${node.base}/health`)).json()) as { status: string }).status

/** The status of an answer that is whole. */
const statusOf = async (answer: Promise<Response>): Promise<number> => {
  const response = await answer
  await response.json()
  return response.status
}

describe("a full disk", () => {
  const mountPoint = mkdtempSync(join(tmpdir(), "edgewise-full-disk-"))
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", mountPoint]).status === 0
  afterAll(() => {
    if (mounted) spawnSync("umount", ["-l", mountPoint])
    rmSync(mountPoint, { recursive: true, force: true })
  })

  // Mounting a file system of 8 MB needs root; without it there is no disk small enough to fill.
  it("costs what has to be written, and nothing else", onlyWhere(mounted, mountNeedsRoot), async () => {
    const dataDir = join(mountPoint, "data")
    mkdirSync(dataDir)
    const node = await startProcess({ models: [fakeModel, whisper], env: { EDGEWISE_DATA_DIR: dataDir } })
    try {
      expect(await statusOf(chat(node))).toBe(200)
      const filler = join(mountPoint, "filler")
      // Writes until the disk is full, or twice its size. The node may be writing too, so the amount is not known beforehand.
      spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4096", "count=4096"], { stdio: "ignore" })
      expect(statfsSync(mountPoint).bavail).toBe(0)

      // What needs no disk is served; its receipts wait.
      for (let i = 0; i < 20; i++) expect(await statusOf(chat(node))).toBe(200)
      const form = () => {
        const body = new FormData()
        body.append("file", new Blob([new Uint8Array(200_000)]), "a.wav")
        return fetch(`${node.base}/v1/audio/transcriptions?model=${whisper.id}`, {
          method: "POST",
          headers: { authorization: `Bearer ${node.devKey}` },
          body,
        })
      }
      const refused = await form()
      expect(refused.status).toBeGreaterThanOrEqual(500)
      expect(Object.keys((await refused.json()) as object)).toContain("detail")
      expect(await health(node)).not.toBe("unhealthy")
      // Removed when the request is over, which is a moment after its answer.
      await eventually(() => readdirSync(join(dataDir, "uploads")).length === 0, "no upload is left")

      rmSync(filler)
      await eventually(async () => (await statusOf(chat(node))) === 200, "it serves again")
      node.signal("SIGTERM")
      expect((await node.exited)[0]).toBe(0)
      const file = readdirSync(dataDir).find((name) => /\.(db|sqlite)$/.test(name))!
      const store = new DatabaseSync(join(dataDir, file), { readOnly: true })
      expect(store.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }])
      store.close()
    } finally {
      await node.dispose()
    }
  })
})

describe("no file descriptors left", () => {
  it("refuses what needs one, serves what does not, and recovers", needs("prlimit"), async () => {
    const node = await startProcess({
      models: [{ ...fakeModel, runtime: { load: "start" } }, { id: "other" }],
    })
    const limit = (soft: string) =>
      execFileSync("prlimit", ["--pid", String(node.pid), `--nofile=${soft}:`], { stdio: "ignore" })
    const held: Array<RawConnection> = []
    try {
      await eventually(async () => (await statusOf(chat(node))) === 200, "the model answers")
      const before = /Max open files\s+(\d+)/.exec(
        execFileSync("cat", [`/proc/${node.pid}/limits`]).toString(),
      )![1]!
      const open = readdirSync(`/proc/${node.pid}/fd`).length
      limit(String(open + 4))
      // An open connection is served; new ones wait in the kernel once the descriptors are used up.
      for (let i = 0; i < 8; i++) held.push(await RawConnection.open(node.port))
      const request = [
        "POST /v1/chat/completions HTTP/1.1",
        "host: localhost",
        `authorization: Bearer ${node.devKey}`,
        "content-type: application/json",
        `content-length: ${Buffer.byteLength(chatBody)}`,
        "",
        chatBody,
      ].join("\r\n")
      await held[0]!.send(request)
      expect((await held[0]!.response()).status).toBe(200)
      // Loading a model needs pipes to its process: refused, and not fatal.
      await held[0]!.send(
        request
          .replace('"fake"', '"other"')
          .replace(/content-length: \d+/, `content-length: ${Buffer.byteLength(chatBody) + 1}`),
      )
      expect((await held[0]!.response()).status).toBe(503)

      limit(before)
      for (const connection of held) connection.destroy()
      await eventually(async () => (await statusOf(chat(node))) === 200, "it serves new connections again")
      expect(await health(node)).toMatch(/^(healthy|degraded)$/)
      node.signal("SIGTERM")
      expect((await node.exited)[0]).toBe(0)
    } finally {
      for (const connection of held) connection.destroy()
      await node.dispose()
    }
  })
})

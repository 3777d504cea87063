// A node with the built-in weights for the screenshots, in a folder of its own, and what they need to know of it.
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

export interface StartedNode {
  readonly base: string
  /** A key that may see everything on the panel Node. */
  readonly operatorKey: string
  readonly developmentKey: string
  readonly folder: string
  readonly stop: () => Promise<void>
}

/** The address and the development key, as the start prints them. */
const printed = (node: ChildProcess): Promise<{ readonly base: string; readonly key: string }> =>
  new Promise((resolve, reject) => {
    let text = ""
    node.stdout?.on("data", (data: Buffer) => {
      text += data.toString()
      const [, base] = /edge listening on (\S+)/.exec(text) ?? []
      const [key] = /svc_\w+/.exec(text) ?? []
      if (base !== undefined && key !== undefined) resolve({ base, key })
    })
    node.once("exit", (status) => reject(new Error(`the node ended with ${status}: ${text}`)))
  })

/** Waits for the models that a node loads at its start: the first answer must not show the time of a load. */
const untilLoaded = async (base: string, key: string): Promise<void> => {
  for (let tries = 0; tries < 300; tries++) {
    const headers = { authorization: `Bearer ${key}` }
    const status = (await (await fetch(`${base}/v1/models/status`, { headers })).json()) as {
      loaded: ReadonlyArray<string>
    }
    if (status.loaded.length >= 3) return
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  throw new Error("the models were not loaded in 150 s")
}

export const startNode = async (): Promise<StartedNode> => {
  const folder = mkdtempSync(join(tmpdir(), "edgewise-screenshots-"))
  const program = join(root, "bin/edgewise.js")
  const data = join(folder, "data")
  const node = spawn(process.execPath, [
    program,
    ...["serve", "--roles", "edge", "--port", "0", "--data-dir", data, "--rate-limit", "0"],
  ])
  const stop = async (): Promise<void> => {
    node.removeAllListeners("exit")
    const ended = new Promise((resolve) => node.once("exit", resolve))
    node.kill("SIGTERM")
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  const { base, key } = await printed(node)
  await untilLoaded(base, key)
  const env = { ...process.env, EDGEWISE_DATA_DIR: data }
  const making = ["keys", "create", "--org", "acme", "--scope", "superadmin", "--json"]
  const made = execFileSync(process.execPath, [program, ...making], { env }).toString()
  const { api_key: operatorKey } = JSON.parse(made) as { api_key: string }
  return { base, developmentKey: key, operatorKey, folder, stop }
}

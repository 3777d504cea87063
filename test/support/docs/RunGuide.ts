// Runs the code blocks of a page as a reader does: in order, in one folder, with the variables that earlier blocks have exported,
// against a node that the page's own `npm start` starts.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Readable, Writable } from "node:stream"
import { eventually } from "../nodes/TestNode.ts"
import { programFolder } from "../process/CompiledCode.ts"
import { freePort } from "../servers/FreePort.ts"
import { type GuideBlock, repository } from "./GuideBlocks.ts"

export interface GuideRun {
  /** What a block printed on standard output. Fails if one of its commands failed. */
  readonly run: (block: GuideBlock) => Promise<string>
  readonly stop: () => Promise<void>
}

interface GuideOptions {
  /** Folder in which the blocks run. */
  readonly folder: string
  /** Lines that are left out, e.g. an installation that is there already. */
  readonly skips?: (line: string) => boolean
}

/** The address in the pages. */
const guidePort = "8080"

/**
 * Makes a folder look like the repository: with links to all that is in it, except that the program is JavaScript as in the package,
 * which starts faster.
 */
export const linkRepository = (folder: string): void => {
  const own = new Set([".git", ".edgewise", "bin", "src"])
  for (const name of readdirSync(repository)) {
    if (!own.has(name)) symlinkSync(join(repository, name), join(folder, name))
  }
  cpSync(join(programFolder, "bin"), join(folder, "bin"), { recursive: true })
  symlinkSync(join(programFolder, "app"), join(folder, "app"))
}

/** The text of a stream so far. */
const collected = (stream: Readable | Writable | null | undefined): (() => string) => {
  let text = ""
  stream?.on("data", (data) => {
    text += data
  })
  return () => text
}

/** Ends a process and those that it has started. */
const endGroup = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const ended = once(child, "close")
  process.kill(-child.pid, "SIGTERM")
  await ended
}

export const startGuide = async ({ folder, skips = () => false }: GuideOptions): Promise<GuideRun> => {
  const port = await freePort()
  // The Node of the tests stands first in the path: `node` in a page means the one that the reader has.
  const env: Record<string, string | undefined> = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: process.env.HOME,
    EDGEWISE_PORT: String(port),
    EDGEWISE_AUTH_PORT: "0",
    EDGEWISE_ROUTER_PORT: "0",
  }
  let node: ChildProcess | undefined

  /** A shell whose exported variables are kept for the next one. */
  const shell = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const script = `set -euo pipefail\n${text}\n{ env -0 >&3; }\n`
      const child = spawn("bash", ["-c", script], {
        cwd: folder,
        env,
        stdio: ["ignore", "pipe", "pipe", "pipe"],
      })
      const [, out, err, variables] = child.stdio.map((stream) => collected(stream))
      child.on("error", reject)
      child.on("close", (status) => {
        if (status !== 0) return reject(new Error(`status ${status}: ${err?.()}${out?.()}\nof:\n${text}`))
        for (const pair of (variables?.() ?? "").split("\0")) {
          const at = pair.indexOf("=")
          if (at > 0 && !["_", "SHLVL", "PWD"].includes(pair.slice(0, at)))
            env[pair.slice(0, at)] = pair.slice(at + 1)
        }
        resolve(out?.() ?? "")
      })
    })

  const startNode = async (line: string): Promise<void> => {
    const child = spawn("bash", ["-c", `exec ${line}`], {
      cwd: folder,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    })
    node = child
    const out = collected(child.stdout)
    const err = collected(child.stderr)
    await eventually(() => {
      if (child.exitCode !== null) throw new Error(`the node ended: ${err()}${out()}`)
      return out().includes("try it:")
    }, "the node listens")
  }

  const runShell = async (text: string): Promise<string> => {
    const lines = text.split("\n").filter((line) => !skips(line))
    const start = lines.findIndex((line) => line.startsWith("npm start"))
    if (start < 0) return shell(lines.join("\n"))
    const before = await shell(lines.slice(0, start).join("\n"))
    await startNode(lines[start]!.replace(/#.*$/, ""))
    return before + (await shell(lines.slice(start + 1).join("\n")))
  }

  return {
    run: async ({ file, language, text }) => {
      const here = text.replaceAll(`127.0.0.1:${guidePort}`, `127.0.0.1:${port}`)
      if (file !== undefined) {
        writeFileSync(join(folder, file), here)
        return ""
      }
      if (language !== "sh") throw new Error(`a block of ${language} has no file, so nothing runs it`)
      return runShell(here)
    },
    stop: async () => {
      if (node !== undefined) await endGroup(node)
    },
  }
}

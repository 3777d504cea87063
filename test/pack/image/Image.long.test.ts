// The image of the Dockerfile, built by podman with the Dockerfile's own steps on a Debian that debootstrap has made, run as
// compose.yaml runs it: another user than root, a root that cannot be written, no capabilities. Fetches packages from the
// registry and the mirror that npm and apt of this machine use; takes about five minutes and 4 GB.
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { root } from "../../map/ReadImports.ts"
import { needs } from "../../support/groups/Needs.ts"
import { freePort } from "../../support/servers/FreePort.ts"
import { startPostgres } from "../../support/servers/PostgresServer.ts"
import { makeDebian } from "./DebianBase.ts"
import { type Podman, podmanIn } from "./Podman.ts"

/** Bytes as podman counts them. The goal is about 600 MB; this is what was measured, and 5 percent. */
const mostBytes = 665e6

const commit = "0123456789ab"
const suite = /^ARG BASE=debian:(\w+)-slim$/m.exec(readFileSync(join(root, "Dockerfile"), "utf8"))?.[1] ?? ""

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe("the image", needs("root", "debootstrap", "podman", "registry"), () => {
  let podman: Podman
  beforeAll(() => {
    const folder = mkdtempSync(join(tmpdir(), "edgewise-image-"))
    for (const name of ["storage", "run", "tmp"]) mkdirSync(join(folder, name))
    podman = podmanIn(folder)
    const base = join(folder, "debian")
    makeDebian(suite, base)
    execFileSync("tar", ["-C", base, "-cf", join(folder, "debian.tar"), "."])
    rmSync(base, { recursive: true })
    podman.run("import", join(folder, "debian.tar"), "localhost/debian")
    podman.build("edgewise", { BASE: "localhost/debian", COMMIT: commit })
  }, 1_800_000)
  afterAll(() => podman.remove())

  const inImage = (...command: ReadonlyArray<string>): string => {
    const [program = "", ...args] = command
    return podman.run("run", "--rm", ...asInCompose, "--entrypoint", program, "edgewise", ...args)
  }

  it("is as large as it is said to be", () => {
    expect(Number(podman.run("image", "inspect", "--format", "{{.Size}}", "edgewise"))).toBeLessThan(
      mostBytes,
    )
  })

  it("has nothing that may not be passed on, and the licence of every package", () => {
    const mounted = podman.run("image", "mount", "edgewise").trim()
    const packages = readdirSync(join(mounted, "edgewise/node_modules"))
    expect(packages).toContain("effect")
    expect(packages.filter((name) => name === "node-av" || name === "@seydx")).toEqual([])
    podman.run("image", "unmount", "edgewise")
    const version = inImage("ffmpeg", "-version")
    expect(version).toContain("--enable-gpl")
    expect(version).not.toMatch(/nonfree|fdk/)
    // Packages of one source may share a text: then the folders of the others are links, which dpkg's rules leave out.
    const format = ["Package", "source:Package"].map((field) => ["$", `{${field}}`].join("")).join(" ")
    const installed = inImage("dpkg-query", "-Wf", `${format}\\n`)
    const pairs = installed
      .trim()
      .split("\n")
      .map((line) => line.split(" ") as [string, string])
    const licences = inImage("sh", "-c", "cd /usr/share/doc; ls -d */copyright").split("\n")
    const covered = new Set(
      pairs.filter(([name]) => licences.includes(`${name}/copyright`)).map(([, source]) => source),
    )
    expect(pairs.length).toBeGreaterThan(200)
    expect(pairs.filter(([, source]) => !covered.has(source))).toEqual([])
  })

  it("knows the commit that it was built from", () => {
    expect(inImage("edgewise", "--version")).toMatch(
      new RegExp(`^edgewise v\\d+\\.\\d+\\.\\d+ \\(${commit}\\)$`, "m"),
    )
  })

  it("speaks, transcribes and writes as a user with no rights on a root that cannot be written", async () => {
    await using node = await startIn(podman, {})
    expect(node.log()).toMatch(
      /^audio files are decoded by \/usr\/bin\/ffmpeg \S+; pictures in chats are refused: they need the package node-av$/m,
    )
    expect(node.log()).toMatch(
      /^edge listening on \S+ with Node's own server and ws: other machines reach 0\.0\.0\.0$/m,
    )
    expect(node.exec("id", "-u").text.trim()).toBe("10001")
    expect(node.exec("sh", "-c", "echo a > /edgewise/a").text).toContain("Read-only file system")
    expect(node.exec("grep", "CapBnd", "/proc/1/status").text).toMatch(/CapBnd:\s0+$/m)
    const input = "Please open the window."
    const speech = await node.post("/v1/audio/speech", {
      model: "tts-82m",
      voice: "af_bella",
      input,
      response_format: "mp3",
    })
    const form = new FormData()
    form.append("file", await speech.blob(), "speech.mp3")
    const heard = await node.send("/v1/audio/transcriptions?model=stt-large-v3-turbo&sync=true", form)
    expect(await heard.json()).toEqual({ text: input })
    expect(await chat(node)).not.toBe("")
    expect(node.exec("/edgewise/node_modules/.bin/node", "/edgewise/bin/health.js").status).toBe(0)
    expect(podman.attempt("healthcheck", "run", node.name).status).toBe(0)
  })

  it("keeps its accounts in the volume, and ends by itself when it is stopped", async () => {
    const volume = ["--volume", "accounts:/data"]
    let key: string
    {
      await using node = await startIn(podman, {}, volume)
      key = node.key
      podman.run("stop", "--time", "60", node.name)
      expect(podman.run("inspect", "--format", "{{.State.ExitCode}}", node.name).trim()).toBe("0")
    }
    await using node = await startIn(podman, {}, volume)
    expect(await chat(node, key)).not.toBe("")
  })

  it("uses PostgreSQL as in compose.yaml", needs("postgresql"), async () => {
    const server = await startPostgres()
    try {
      await using node = await startIn(podman, {
        EDGEWISE_DATABASE_URL: await server.freshUrl(),
        EDGEWISE_ROLES: "edge",
      })
      expect(await chat(node)).not.toBe("")
      expect(node.exec("sh", "-c", "ls /data").text).not.toContain("sqlite")
    } finally {
      await server.remove()
    }
  })
})

/** What compose.yaml sets. Limits as this machine's hard ones, because raising them needs a right that it may lack. */
const asInCompose = [
  ..."--read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --network host".split(" "),
  ..."--ulimit nofile=4096:4096 --ulimit nproc=4096:4096".split(" "),
]

interface ImageNode extends AsyncDisposable {
  readonly name: string
  readonly key: string
  readonly log: () => string
  readonly exec: (...command: ReadonlyArray<string>) => {
    readonly status: number | null
    readonly text: string
  }
  readonly send: (path: string, body: string | FormData, type?: string, key?: string) => Promise<Response>
  readonly post: (path: string, body: object, key?: string) => Promise<Response>
}

let count = 0

const startIn = async (
  podman: Podman,
  settings: Readonly<Record<string, string>>,
  volume: ReadonlyArray<string> = [],
): Promise<ImageNode> => {
  const port = await freePort()
  const name = `node-${count++}`
  const all = { EDGEWISE_PORT: String(port), EDGEWISE_AUTH_PORT: "0", EDGEWISE_ROUTER_PORT: "0", ...settings }
  const env = Object.entries(all).flatMap(([key, value]) => ["--env", `${key}=${value}`])
  podman.attempt("run", "--detach", "--name", name, ...asInCompose, ...env, ...volume, "edgewise")
  const log = () => podman.attempt("logs", name).text
  const exec = (...command: ReadonlyArray<string>) => podman.attempt("exec", name, ...command)
  const remove = () => void podman.attempt("rm", "--force", "--volumes", "--time", "0", name)
  try {
    while (!log().includes("try it:\n")) {
      if (podman.run("inspect", "--format", "{{.State.Running}}", name).trim() !== "true")
        throw new Error(`it ended: ${log().slice(-2_000)}`)
      await pause(200)
    }
    const key = /svc_\w+/.exec(exec("edgewise", "keys", "create", "--org", "acme").text)?.[0] ?? ""
    const send = async (
      path: string,
      body: string | FormData,
      type?: string,
      as = key,
    ): Promise<Response> => {
      const headers = {
        authorization: `Bearer ${as}`,
        ...(type === undefined ? {} : { "content-type": type }),
      }
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body })
      expect(reply.status, await (reply.ok ? "" : reply.text())).toBe(200)
      return reply
    }
    const post = (path: string, body: object, as?: string) =>
      send(path, JSON.stringify(body), "application/json", as)
    return { name, key, log, exec, send, post, [Symbol.asyncDispose]: async () => remove() }
  } catch (error) {
    remove()
    throw error
  }
}

const chat = async (node: ImageNode, key?: string): Promise<string> => {
  const messages = [{ role: "user", content: "What is the capital of Italy?" }]
  const reply = await node.post("/v1/chat/completions", { model: "llm-3.5-27b", messages }, key)
  const { choices } = (await reply.json()) as { choices: ReadonlyArray<{ message: { content: string } }> }
  return choices[0]?.message.content ?? ""
}

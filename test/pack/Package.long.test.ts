// `npm pack`, and the package installed in an empty folder: its size, its version, and speech from it, on the Node that
// npm installed beside it. Without a registry: the packages that npm would fetch are copied from here.
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fetched } from "../../pack/Carried.ts"
import { root } from "../map/ReadImports.ts"

/** The limit of an installation: a goal, as `du -m` counts. */
const mostMegabytes = 450

const folder = mkdtempSync(join(tmpdir(), "edgewise-pack-"))
const modules = join(folder, "node_modules")
const own = join(modules, "edgewise")
let server: ChildProcess | undefined

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
}
const read = (path: string): Manifest => JSON.parse(readFileSync(path, "utf8")) as Manifest
const sourceManifest = readFileSync(join(root, "package.json"), "utf8")

const files = (path: string): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, withFileTypes: true, encoding: "utf8" })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

beforeAll(() => {
  execFileSync("npm", ["pack", "--pack-destination", folder, "--loglevel=error"], {
    cwd: root,
    stdio: "pipe",
  })
  mkdirSync(own, { recursive: true })
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? ""
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", own, "--strip-components=1"])
  const { dependencies, optionalDependencies } = read(join(own, "package.json"))
  for (const name of [...Object.keys(dependencies), ...Object.keys(optionalDependencies), "@swc/helpers"]) {
    const installed = join(root, "node_modules", name)
    if (!existsSync(installed)) continue
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    cpSync(installed, join(modules, name), { recursive: true })
  }
  execFileSync(process.execPath, [join(own, "bin", "trim.js")])
}, 600_000)

afterAll(async () => {
  if (server !== undefined && server.exitCode === null) {
    const ended = new Promise((resolve) => server?.once("exit", resolve))
    server.kill("SIGKILL")
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
})

const launcher = join(own, "bin", "edgewise.js")

describe("the package", () => {
  it("leaves the repository as it was", () => {
    expect(readFileSync(join(root, "package.json"), "utf8")).toBe(sourceManifest)
    expect(existsSync(join(root, "app"))).toBe(false)
  })

  it("has no TypeScript of the program, no test, no training, and the texts that licences ask for", () => {
    const paths = files(own).map((path) => path.slice(own.length + 1))
    expect(paths.filter((path) => path.endsWith(".ts") && !path.includes("node_modules"))).toEqual([])
    expect(
      paths.filter((path) => /^(?:app\/)?(?:test|bench|pack)\/|models\/(?:train|eval)\//.test(path)),
    ).toEqual([])
    for (const path of ["LICENSE", "NOTICE", "README.md", "app/LICENCES.md"]) expect(paths).toContain(path)
    for (const name of fetched)
      expect(paths.filter((path) => path.includes(`node_modules/${name}/`))).toEqual([])
  })

  it("takes less than 450 MB when it is installed", () => {
    const bytes = files(modules).reduce((sum, path) => sum + statSync(path).blocks * 512, 0)
    expect(bytes / 1024 ** 2).toBeLessThan(mostMegabytes)
  })

  it("knows its commit", () => {
    const printed = execFileSync(process.execPath, [launcher, "--version"], { cwd: folder, encoding: "utf8" })
    expect(printed).toMatch(/^edgewise v\d+\.\d+\.\d+ \(([0-9a-f]{12}(-dirty)?|unknown)\)$/m)
  })
})

/** The first match in what the server prints. Fails when it ends. */
const printed = (process: ChildProcess, patterns: ReadonlyArray<RegExp>): Promise<ReadonlyArray<string>> =>
  new Promise((resolve, reject) => {
    let text = ""
    const look = (chunk: Buffer) => {
      text += chunk.toString()
      const found = patterns.map((pattern) => pattern.exec(text)?.[1])
      if (found.every((one) => one !== undefined)) resolve(found as ReadonlyArray<string>)
    }
    process.stdout?.on("data", look)
    process.stderr?.on("data", look)
    process.once("exit", (code) => reject(new Error(`it ended with ${code}: ${text.slice(-2_000)}`)))
  })

it("speaks, transcribes and writes, from the launcher to its end", async () => {
  const ports = ["--port", "0", "--auth-port", "0", "--router-port", "0"]
  const started = spawn(process.execPath, [launcher, "serve", "--data-dir", join(folder, "data"), ...ports], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  })
  server = started
  const [base = "", key = ""] = await printed(started, [/edge listening on (\S+)/, /(svc_[\w-]+)/])
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const post = async (path: string, body: object): Promise<Response> => {
    const reply = await fetch(`${base}${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    expect(reply.status, await (reply.ok ? "" : reply.text())).toBe(200)
    return reply
  }
  const input = "Please open the window."
  const speech = { model: "tts-82m", voice: "af_bella", input }
  const mp3 = await (await post("/v1/audio/speech", { ...speech, response_format: "mp3" })).blob()
  const form = new FormData()
  form.append("file", mp3, "speech.mp3")
  const heard = await fetch(`${base}/v1/audio/transcriptions?model=stt-large-v3-turbo&sync=true`, {
    method: "POST",
    headers: { authorization: headers.authorization },
    body: form,
  })
  expect(await heard.json()).toEqual({ text: input })
  const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] }
  const chat = await post("/v1/chat/completions", {
    model: "llm-3.5-27b",
    messages: [{ role: "user", content: "Is it open?" }],
    response_format: { type: "json_schema", json_schema: { name: "answer", schema } },
  })
  const { choices } = (await chat.json()) as { choices: ReadonlyArray<{ message: { content: string } }> }
  expect(JSON.parse(choices[0]?.message.content ?? "")).toHaveProperty("ok")
  const ended = new Promise((resolve) => started.once("exit", (code) => resolve(code)))
  started.kill("SIGTERM")
  expect(await ended).toBe(0)
}, 300_000)

// Inside the confinement of a decoder and of an engine: what must be unreachable is, and what they need is reachable.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { engineConfinement } from "#actors/engine/EngineConfinement.ts"
import { decoderConfinement } from "#audio/DecoderProcess.ts"
import { findFfmpeg } from "#audio/FfmpegProgram.ts"
import { ConfinedFolder } from "#confine/ConfinedFolder.ts"
import { confinementLine } from "#confine/Launch.ts"
import type { ProcessHome } from "#domain/process/ProcessHome.ts"
import { needs } from "../support/groups/Needs.ts"
import { attempt } from "../support/process/ConfinedScript.ts"

const dataDir = realpathSync(mkdtempSync(join(tmpdir(), "edgewise-confined-")))
const inside = (...names: ReadonlyArray<string>): string => join(dataDir, ...names)
for (const folder of ["uploads", "processes", "rings", "compiled", "weights"]) mkdirSync(inside(folder))
for (const file of ["store.sqlite", "dev-key", "signing-keys.json", "uploads/other", "uploads/mine"])
  writeFileSync(inside(file), "secret")
for (const file of ["compiled/module", "weights/model.onnx", "weights/model.onnx_data"])
  writeFileSync(inside(file), "plain")

const home: ProcessHome = {
  folder: inside("processes"),
  links: true,
  rings: inside("rings"),
  closed: [dataDir],
}
const room = new ConfinedFolder(home)
let listener: Server
let port = 0
beforeAll(async () => {
  listener = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve))
  const address = listener.address()
  port = typeof address === "object" && address !== null ? address.port : 0
})
afterAll(() => {
  listener.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const open = (path: string): string => `return String(fs.readFileSync(${JSON.stringify(path)}))`
const write = (path: string): string => `fs.writeFileSync(${JSON.stringify(path)}, "changed")`
const source = fileURLToPath(new URL("../../src/audio/decoder/decoderMain.ts", import.meta.url))

/** What neither may do. */
const forbidden = () => ({
  "reads the database": open(inside("store.sqlite")),
  "reads the development key": open(inside("dev-key")),
  "reads the signing keys": open(inside("signing-keys.json")),
  "reads another upload": open(inside("uploads/other")),
  "reads it in the pool of threads": `await fs.promises.readFile(${JSON.stringify(inside("dev-key"))})`,
  "reads it in a thread of its own":
    `const worker = new workers.Worker('require("node:fs").readFileSync(' + ${JSON.stringify(JSON.stringify(inside("dev-key")))} + ')', { eval: true }); ` +
    "await failed(worker, 'exit')",
  "lists the uploads": `return fs.readdirSync(${JSON.stringify(inside("uploads"))}).length`,
  "removes an upload": `fs.unlinkSync(${JSON.stringify(inside("uploads/other"))})`,
  "links an upload to itself": `fs.linkSync(${JSON.stringify(inside("uploads/other"))}, ${JSON.stringify(join(room.path, "stolen"))})`,
  "changes the program": write(source),
  "reads the node's environment": open(`/proc/${process.pid}/environ`),
  "reads the node's memory": `fs.openSync("/proc/${process.pid}/mem", "r")`,
  "connects to the node": `await failed(net.connect(${port}, "127.0.0.1"), "connect")`,
  "sends a datagram": `const socket = dgram.createSocket("udp4"); const end = failed(socket, "listening"); socket.bind(0); await end`,
  "starts a shell": `await failed(child.spawn("/bin/sh", ["-c", "true"]), "exit")`,
  "ends the node": `process.kill(${process.pid}, 0)`,
})

/** A link to a file outside of the folder is refused with EXDEV. */
const refusals = ["EACCES", "EPERM", "EXDEV"]

describe("a confined decoder", needs("confinement"), () => {
  it("reaches what it was given, and nothing else", async () => {
    const given = await room.give(inside("uploads/mine"))
    const ring = await room.share(inside("rings/ring"))
    const outcomes = attempt(decoderConfinement(room.path, home), {
      ...forbidden(),
      "reads the ring folder": `fs.readdirSync(${JSON.stringify(home.rings)})`,
      "reads compiled code": open(inside("compiled/module")),
      "writes compiled code": write(inside("compiled/module")),
      "makes a file": write(join(room.path, "new")),
    })
    for (const [name, outcome] of Object.entries(outcomes))
      expect([name, refusals.includes(String(outcome))]).toEqual([name, true])
    const allowed = attempt(decoderConfinement(room.path, home), {
      "reads its upload": open(given),
      "writes its ring": `const file = fs.openSync(${JSON.stringify(ring)}, "r+"); fs.writeSync(file, Buffer.alloc(64)); fs.closeSync(file)`,
      "knows its memory": "return process.memoryUsage.rss() > 0",
      "writes more than a file may have": `const file = fs.openSync(${JSON.stringify(ring)}, "r+"); process.on("SIGXFSZ", () => {}); fs.writeSync(file, Buffer.alloc(1), 0, 1, 32 * 1024 * 1024)`,
      "has a core limit": `return /Max core file size\\s+0\\s+0/.test(fs.readFileSync("/proc/self/limits", "utf8"))`,
      "has capabilities": `return /CapEff:\\s+0+\\n[^]*CapBnd:\\s+0+\\n/.test(fs.readFileSync("/proc/self/status", "utf8"))`,
      "has an environment": "return Object.keys(process.env).join()",
    })
    expect(allowed).toEqual({
      "reads its upload": "secret",
      "writes its ring": "done",
      "knows its memory": true,
      "writes more than a file may have": "EFBIG",
      "has a core limit": true,
      "has capabilities": true,
      "has an environment": "",
    })
    await room.takeBack()
    expect(attempt(decoderConfinement(room.path, home), { "reads it again": open(given) })).toEqual({
      "reads it again": "ENOENT",
    })
  })
})

describe("a confined decoder with a program", needs("confinement", "ffmpeg"), () => {
  it("may start that program only, and the program reaches no more than the decoder", async () => {
    const found = await Effect.runPromise(findFfmpeg(process.env.PATH ?? ""))
    const program = { kind: "ffmpeg", ...found } as const
    const given = await room.give(inside("uploads/mine"))
    const [url, upload, secret] = [`tcp://127.0.0.1:${port}`, `file:${given}`, `file:${inside("dev-key")}`]
    /** Copies bytes without looking at them, with FFmpeg's own file and network code; says how that ended. */
    const copy = (from: string) =>
      `const run = child.spawnSync(${JSON.stringify(found.path)}, ["-v", "error", "-f", "data", "-i", ${JSON.stringify(from)}, "-map", "0", "-c", "copy", "-f", "data", "pipe:1"], { encoding: "latin1", env: {} }); return run.error?.code ?? (run.stdout === "secret" ? "read" : /denied|not permitted/i.exec(run.stderr)?.[0] ?? run.stderr)`
    const outcomes = attempt(decoderConfinement(room.path, home, program), {
      ...forbidden(),
      "reads its upload by the program": copy(upload),
      "reads the development key by the program": copy(secret),
      "connects to the node by the program": copy(url),
    })
    const { "reads its upload by the program": own, ...refused } = outcomes
    expect(own).toBe("read")
    for (const [name, outcome] of Object.entries(refused))
      expect([name, [...refusals, "denied", "not permitted"].includes(String(outcome))]).toEqual([name, true])
    // Without the program's grant it cannot be started.
    expect(attempt(decoderConfinement(room.path, home), { "starts it": copy(upload) })).toEqual({
      "starts it": "EACCES",
    })
    await room.takeBack()
  })
})

describe("a confined engine", needs("confinement"), () => {
  const confinement = () =>
    engineConfinement({
      folder: room.path,
      compiled: inside("compiled"),
      home,
      files: [inside("weights/model.onnx")],
      env: {},
    })

  it("cannot reach the node's secrets, files or network", () => {
    const outcomes = attempt(confinement(), {
      ...forbidden(),
      "changes its weights": write(inside("weights/model.onnx")),
      "changes a ring": write(inside("rings/ring")),
    })
    for (const [name, outcome] of Object.entries(outcomes))
      expect([name, refusals.includes(String(outcome))]).toEqual([name, true])
  })

  it("reaches its weights, the rings, compiled code and a folder of its own", () => {
    writeFileSync(inside("rings/ring"), "samples")
    const outcomes = attempt(confinement(), {
      "reads its weights": open(inside("weights/model.onnx")),
      "reads what lies beside them": open(inside("weights/model.onnx_data")),
      "reads a ring": open(inside("rings/ring")),
      "writes compiled code": write(inside("compiled/module")),
      "writes a temporary file": write(join(room.path, "temporary")),
      "makes a thread": `const worker = new workers.Worker("", { eval: true }); await failed(worker, "exit")`,
    })
    expect(outcomes).toEqual({
      "reads its weights": "plain",
      "reads what lies beside them": "plain",
      "reads a ring": "samples",
      "writes compiled code": "done",
      "writes a temporary file": "done",
      "makes a thread": "done",
    })
  })
})

describe("weights", () => {
  it("in the data directory itself are read alone", () => {
    writeFileSync(inside("model.gguf"), "plain")
    const confinement = engineConfinement({
      folder: room.path,
      compiled: undefined,
      home,
      files: [inside("model.gguf")],
      env: {},
    })
    expect(confinement.grants).toContainEqual({ path: inside("model.gguf"), access: "read" })
    expect(confinement.grants.filter(({ path }) => inside("store.sqlite").startsWith(path))).toEqual([])
  })
})

describe("the log line at a node's start", () => {
  it("names what is confined and what is not", () => {
    expect(confinementLine({ way: "shell", mechanisms: ["rlimits"] })).toBe(
      "decoders and engines are confined by rlimits; not in force: landlock, seccomp, no-new-privs, no-capabilities",
    )
    expect(confinementLine({ way: "plain", mechanisms: [] })).toMatch(/confined by nothing; not in force/)
    expect(
      confinementLine({
        way: "perl",
        mechanisms: ["landlock", "seccomp", "no-new-privs", "no-capabilities", "rlimits"],
      }),
    ).toBe("decoders and engines are confined by landlock, seccomp, no-new-privs, no-capabilities, rlimits")
  })
})

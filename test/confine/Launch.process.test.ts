// Inside the confinement of a decoder and of an engine: what must be unreachable is, and what they need is reachable.
import { spawn } from "node:child_process"
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { createServer, type Server } from "node:net"
import { getPriority, homedir, tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { engineConfinement, threadNames } from "#actors/engine/EngineConfinement.ts"
import { decoderConfinement } from "#audio/DecoderProcess.ts"
import { findFfmpeg } from "#audio/FfmpegProgram.ts"
import { ConfinedFolder } from "#confine/ConfinedFolder.ts"
import { confinementLine } from "#confine/Launch.ts"
import { isWithin } from "#domain/process/Confinement.ts"
import type { ProcessHome } from "#domain/process/ProcessHome.ts"
import { needs } from "../support/groups/Needs.ts"
import { attempt } from "../support/process/ConfinedScript.ts"

const dataDir = realpathSync(mkdtempSync(join(tmpdir(), "edgewise-confined-")))
const inside = (...names: ReadonlyArray<string>): string => join(dataDir, ...names)
for (const folder of ["uploads", "processes", "rings", "compiled", "weights"]) mkdirSync(inside(folder))
const secrets = [
  "store.sqlite",
  "dev-key",
  "operator-token",
  "signing-keys.json",
  "uploads/other",
  "uploads/mine",
]
for (const file of secrets) writeFileSync(inside(file), "secret")
for (const file of ["compiled/module", "weights/model.onnx", "weights/model.onnx_data", "weights/other.onnx"])
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
/** A process of the node's user, on which limits and priorities are tried. */
const bystander = spawn("sleep", ["600"], { stdio: "ignore" })
beforeAll(async () => {
  listener = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve))
  const address = listener.address()
  port = typeof address === "object" && address !== null ? address.port : 0
})
afterAll(() => {
  listener.close()
  bystander.kill("SIGKILL")
  rmSync(dataDir, { recursive: true, force: true })
})

const open = (path: string): string => `return String(fs.readFileSync(${JSON.stringify(path)}))`
const write = (path: string): string => `fs.writeFileSync(${JSON.stringify(path)}, "changed")`
const source = fileURLToPath(new URL("../../src/audio/decoder/decoderMain.ts", import.meta.url))

/** Numbers of system calls that Node has no function for (asm/unistd_64.h, asm-generic/unistd.h). */
const calls =
  process.arch === "arm64"
    ? { ioctl: 29, setxattr: 5, removexattr: 14, prlimit64: 261, sched_setaffinity: 122, ioprio_set: 30 }
    : { ioctl: 16, setxattr: 188, removexattr: 197, prlimit64: 302, sched_setaffinity: 203, ioprio_set: 251 }

/** Changes of a file's mode, owner, times and attributes. */
const metadata = (path: string): Readonly<Record<string, string>> => {
  const file = JSON.stringify(path)
  const opened = (body: string): string => `const file = fs.openSync(${file}, "r"); ${body}`
  return {
    "changes a mode": `fs.chmodSync(${file}, 0o666)`,
    "changes a mode in the pool of threads": `await fs.promises.chmod(${file}, 0o666)`,
    "changes a mode by fchmodat2": `system(452, -100, ${file}, 0o666, 0)`,
    "changes an owner": `fs.chownSync(${file}, process.getuid(), process.getgid())`,
    "changes the owner of a link": `fs.lchownSync(${file}, process.getuid(), process.getgid())`,
    "changes times": `fs.utimesSync(${file}, 0, 0)`,
    "changes the times of a link": `fs.lutimesSync(${file}, 0, 0)`,
    "sets an attribute": `system(${calls.setxattr}, ${file}, "user.edgewise", "1", 1, 0)`,
    "sets an attribute by setxattrat": `system(463, -100, ${file}, 0, "user.edgewise", null, 0)`,
    "removes an attribute": `system(${calls.removexattr}, ${file}, "user.edgewise")`,
    "removes an attribute by removexattrat": `system(466, -100, ${file}, 0, "user.edgewise")`,
    "sets flags by file_setattr": `system(469, -100, ${file}, null, 0, 0)`,
    // Of a file that it may open.
    "changes the mode of an open file": opened("fs.fchmodSync(file, 0o666)"),
    "changes the owner of an open file": opened("fs.fchownSync(file, process.getuid(), process.getgid())"),
    "changes the times of an open file": opened("fs.futimesSync(file, 0, 0)"),
    "sets the flags of an open file": opened(
      `system(${calls.ioctl}, file, 0x40086602, Buffer.from([0x80, 0, 0, 0, 0, 0, 0, 0]))`,
    ),
  }
}

/** Limits, processors and priorities of another process. */
const harm = (pid: number): Readonly<Record<string, string>> => ({
  // RLIMIT_NOFILE
  "limits the open files of another": `system(${calls.prlimit64}, ${pid}, 7, Buffer.from(new BigUint64Array([50n, 50n]).buffer), null)`,
  "reads the limits of another": `system(${calls.prlimit64}, ${pid}, 7, null, Buffer.alloc(16))`,
  "chooses the processors of another": `system(${calls.sched_setaffinity}, ${pid}, 8, Buffer.from([1, 0, 0, 0, 0, 0, 0, 0]))`,
  "lowers the priority of another": `os.setPriority(${pid}, 19)`,
  // PRIO_PGRP, whose 0 is the process group that the gateway is in
  "lowers the priority of its group": `system(${process.arch === "arm64" ? 140 : 141}, 1, 0, 19)`,
  "lowers the disk priority of another": `system(${calls.ioprio_set}, 1, ${pid}, ${3 << 13})`,
})

const modeOf = (path: string): string => {
  const { mode, mtimeMs } = statSync(path)
  return `${(mode & 0o777).toString(8)} ${mtimeMs}`
}

/** What neither may do. */
const forbidden = () => ({
  "reads the database": open(inside("store.sqlite")),
  "reads the development key": open(inside("dev-key")),
  "reads the operator token": open(inside("operator-token")),
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

describe("a confined process", needs("confinement"), () => {
  it("changes no mode, owner, time or attribute of a file, and nothing of another process", async () => {
    const engine = engineConfinement({
      folder: room.path,
      compiled: inside("compiled"),
      home,
      files: [inside("weights/model.onnx")],
      env: {},
    })
    const own = join(room.path, "own")
    writeFileSync(own, "plain")
    const pid = bystander.pid!
    const limitsBefore = readFileSync(`/proc/${pid}/limits`, "utf8")
    const priorityBefore = getPriority(pid)
    for (const confinement of [decoderConfinement(room.path, home), engine])
      for (const path of [inside("dev-key"), own, source]) {
        const before = modeOf(path)
        const outcomes = attempt(confinement, { ...metadata(path), ...harm(pid) })
        const succeeded = Object.entries(outcomes).filter(
          ([, outcome]) => !refusals.includes(String(outcome)),
        )
        expect(succeeded).toEqual([])
        expect(modeOf(path)).toBe(before)
      }
    expect(readFileSync(`/proc/${pid}/limits`, "utf8")).toBe(limitsBefore)
    expect(getPriority(pid)).toBe(priorityBefore)
    rmSync(own)
  })

  it("may lower its own limits and priority", () => {
    expect(
      attempt(decoderConfinement(room.path, home), {
        "reads its limits": `system(${calls.prlimit64}, 0, 7, null, Buffer.alloc(16))`,
        "limits itself": `system(${calls.prlimit64}, 0, 7, Buffer.from(new BigUint64Array([50n, 50n]).buffer), null)`,
        "lowers its priority": "os.setPriority(0, 19)",
      }),
    ).toEqual({ "reads its limits": "done", "limits itself": "done", "lowers its priority": "done" })
  })
})

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
      "empties its upload": `fs.truncateSync(${JSON.stringify(given)})`,
      "empties its ring": write(ring),
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
      files: [inside("weights/model.onnx"), inside("weights/model.onnx_data")],
      env: {},
    })

  it("cannot reach the node's secrets, files or network", () => {
    const outcomes = attempt(confinement(), {
      ...forbidden(),
      "changes its weights": write(inside("weights/model.onnx")),
      "changes a ring": write(inside("rings/ring")),
      "reads weights of another model": open(inside("weights/other.onnx")),
      "lists the folder of its weights": `return fs.readdirSync(${JSON.stringify(inside("weights"))}).length`,
    })
    for (const [name, outcome] of Object.entries(outcomes))
      expect([name, refusals.includes(String(outcome))]).toEqual([name, true])
  })

  it("reaches its weights, the rings, compiled code and a folder of its own", () => {
    writeFileSync(inside("rings/ring"), "samples")
    const outcomes = attempt(confinement(), {
      "reads its weights": open(inside("weights/model.onnx")),
      "reads their second part": open(inside("weights/model.onnx_data")),
      "reads a ring": open(inside("rings/ring")),
      "writes compiled code": write(inside("compiled/module")),
      "writes a temporary file": write(join(room.path, "temporary")),
      "makes a thread": `const worker = new workers.Worker("", { eval: true }); await failed(worker, "exit")`,
    })
    expect(outcomes).toEqual({
      "reads its weights": "plain",
      "reads their second part": "plain",
      "reads a ring": "samples",
      "writes compiled code": "done",
      "writes a temporary file": "done",
      "makes a thread": "done",
    })
  })
})

describe("a confined engine on a GPU", needs("confinement"), () => {
  it("names its own threads, as CUDA does when it starts, those of no other process, and empties nothing else of /proc", () => {
    const emptied = "fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_TRUNC"
    const written = (file: string): string =>
      `const file = fs.openSync(${file}, ${emptied}); fs.writeSync(file, "named"); fs.closeSync(file)`
    const named = (pid: string): string =>
      `for (const thread of fs.readdirSync("/proc/${pid}/task")) { ${written(`"/proc/${pid}/task/" + thread + "/comm"`)} }`
    const { grants, limits } = engineConfinement({
      folder: room.path,
      compiled: undefined,
      home,
      files: [],
      env: {},
    })
    const outcomes = attempt(
      { limits, sockets: "local", grants: [...grants, ...threadNames] },
      {
        "names its own": named("self"),
        "reads the name": `return fs.readFileSync("/proc/self/task/" + process.pid + "/comm", "utf8").trim()`,
        "names another's": named(String(bystander.pid)),
        "names another": written(`"/proc/${bystander.pid}/comm"`),
        "empties a file of its own beside its threads": written(`"/proc/self/oom_score_adj"`),
        "empties a file of another": written(`"/proc/${bystander.pid}/oom_score_adj"`),
        "empties a file of the system": written(`"/proc/sys/kernel/core_pattern"`),
      },
    )
    expect(outcomes).toEqual({
      "names its own": "done",
      "reads the name": "named",
      "names another's": "EACCES",
      "names another": "EACCES",
      "empties a file of its own beside its threads": "EACCES",
      "empties a file of another": "EACCES",
      "empties a file of the system": "EACCES",
    })
  })
})

describe("weights", () => {
  const granted = (...files: ReadonlyArray<string>): ReadonlyArray<string> =>
    engineConfinement({ folder: room.path, compiled: undefined, home, files, env: {} }).grants.map(
      ({ path }) => path,
    )

  it("are granted file by file, wherever they are", () => {
    for (const file of [inside("weights/model.onnx"), join(homedir(), "model.gguf"), "/model.gguf"]) {
      const paths = granted(file)
      expect(paths).toContain(file)
      expect(paths.filter((path) => isWithin(path, file))).toEqual([file])
    }
  })

  it("in a folder are granted with it, and a folder that must stay closed is not", () => {
    const voices = inside("weights/voices")
    mkdirSync(voices)
    mkdirSync(inside("blobs"))
    writeFileSync(inside("blobs/1f"), "plain")
    symlinkSync(inside("blobs/1f"), join(voices, "af_bella.bin"))
    symlinkSync(inside("uploads"), join(voices, "folder"))
    const link = inside("weights/link")
    symlinkSync(dirname(homedir()), link)
    expect(granted(voices)).toEqual(expect.arrayContaining([voices, inside("blobs/1f")]))
    expect(granted(voices)).not.toContain(inside("uploads"))
    const less = granted()
    for (const closed of ["/", dirname(homedir()), homedir(), dataDir, dirname(dataDir), link])
      expect([closed, granted(closed)]).toEqual([closed, less])
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

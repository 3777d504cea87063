// Reads the environment of the models: Node, native modules, confinement, memory, disk, limits, timers and loopback.
// Takes about two seconds and leaves nothing behind.
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { statfs } from "node:fs/promises"
import { connect, createServer } from "node:net"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import type { Config } from "#config/Settings.ts"
import { confinementLine } from "#confine/Launch.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { median } from "#harness/figures/Statistics.ts"
import { listenProblem } from "#transport/ListenProblem.ts"
import { nodeDecoder } from "../../roles/NodeDecoder.ts"
import { listenerFacts } from "../../roles/NodeLayer.ts"
import { dataDirProblem } from "../../roles/Probes.ts"
import { clockProblem } from "../../roles/StartWarnings.ts"
import { gpuKinds, isSetUp } from "../../setup/Packages.ts"
import type { Machine, Surrounding } from "../report/Document.ts"
import * as Verdicts from "./SurroundingVerdicts.ts"

const moduleTimeoutMs = 20_000

/** Exists where NVIDIA's kernel driver has found a GPU. */
const nvidiaDriver = "/dev/nvidiactl"

/** Loads one native module in a process of its own, which may crash. `detail` is what the module reports. */
const loadModule = (name: string): Effect.Effect<Surrounding> =>
  Effect.callback((resume) => {
    const main = fileURLToPath(new URL("./nativeModuleMain.ts", import.meta.url))
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, name], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: moduleTimeoutMs,
      killSignal: "SIGKILL",
    })
    const said = { stdout: "", stderr: "" }
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said.stdout += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said.stderr = (said.stderr + text).slice(-2_000)
    })
    child.once("error", (cause) => resume(Effect.succeed(Verdicts.moduleVerdict(name, "", cause.message))))
    child.once("close", (code, signal) => {
      const why = said.stderr.trim().split("\n").at(-1) || `it ended with ${signal ?? code}`
      const problem = code === 0 ? undefined : why
      resume(Effect.succeed(Verdicts.moduleVerdict(name, said.stdout.trim(), problem)))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const modules = ["uWebSockets.js", "node-llama-cpp", "onnxruntime-node"] as const

/** The process of calls has one thread, so what a call takes of it says how many there can be. */
const calls = ({ webrtcPort }: Config): Effect.Effect<Surrounding> =>
  webrtcPort === 0
    ? Effect.succeed(Verdicts.ok("calls", "none are taken: EDGEWISE_WEBRTC_PORT is not set"))
    : Effect.map(loadModule("node-datachannel"), (found) => ({ ...found, name: "calls" }))

const nearestExisting = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path))

const freeBytes = (path: string): Effect.Effect<number | undefined> =>
  Effect.promise(() =>
    statfs(nearestExisting(path)).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => undefined,
    ),
  )

const openFileLimit = (): number | undefined => {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8")
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1]
    return soft === undefined ? undefined : Number(soft)
  } catch {
    return undefined
  }
}

const timerMs: Effect.Effect<number> = Effect.promise(async () => {
  const taken: Array<number> = []
  for (let at = 0; at < 30; at++) {
    const beganMs = performance.now()
    await new Promise((resolve) => setTimeout(resolve, 1))
    taken.push(performance.now() - beganMs)
  }
  return median(taken)
})

/** Round trips of one byte over a TCP connection. Undefined if there is no connection. */
const loopbackMs: Effect.Effect<number | undefined> = Effect.callback((resume) => {
  const server = createServer((socket) => socket.setNoDelay(true).pipe(socket))
  const end = (result: number | undefined) => {
    server.close()
    resume(Effect.succeed(result))
  }
  const late = setTimeout(() => end(undefined), 2_000)
  server.once("error", () => end(undefined))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const socket = connect(port, "127.0.0.1").setNoDelay(true)
    const taken: Array<number> = []
    let sentMs = 0
    const send = () => {
      sentMs = performance.now()
      socket.write("x")
    }
    socket.once("connect", send)
    socket.once("error", () => end(undefined))
    socket.on("data", () => {
      taken.push(performance.now() - sentMs)
      if (taken.length < 50) return send()
      clearTimeout(late)
      socket.destroy()
      end(median(taken))
    })
  })
})

/** The address at which `serve` would listen, if something listens there already. */
const answering = ({ host, port }: Config): Effect.Effect<string | undefined> =>
  port === 0
    ? Effect.succeed(undefined)
    : Effect.map(
        Effect.promise(() => listenProblem(host, port)),
        (problem) => (problem?.includes("in use") === true ? `${host}:${port}` : undefined),
      )

const startBytes = (deployed: ReadonlyArray<Deployment>): number =>
  deployed.reduce((sum, { entry, sizeBytes }) => sum + (entry.runtime.load === "start" ? sizeBytes : 0), 0)

export const surroundings = (
  config: Config,
  machine: Machine,
  deployed: ReadonlyArray<Deployment>,
): Effect.Effect<ReadonlyArray<Surrounding>> =>
  Effect.gen(function* () {
    const timer = yield* timerMs
    const loopback = yield* loopbackMs
    const node = yield* answering(config)
    const [uws, ...native] = yield* Effect.forEach(modules, loadModule, { concurrency: 2 })
    return [
      Verdicts.nodeVerdict(process.version),
      Verdicts.transportVerdict(listenerFacts(config), uws),
      ...native,
      yield* calls(config),
      Verdicts.decoderVerdict(yield* Effect.result(nodeDecoder(config))),
      Verdicts.gpuLibrariesVerdict(gpuKinds.filter(isSetUp), existsSync(nvidiaDriver)),
      Verdicts.confinementVerdict(confinementLine(), config.confine),
      Verdicts.coresVerdict(machine),
      Verdicts.memoryVerdict(machine.memory_available_bytes, startBytes(deployed)),
      Verdicts.diskVerdict(yield* freeBytes(config.dataDir), yield* dataDirProblem(config.dataDir)),
      Verdicts.openFilesVerdict(openFileLimit(), config.maxConnections),
      Verdicts.timersVerdict(timer),
      Verdicts.loopbackVerdict(loopback),
      Verdicts.clockVerdict(yield* clockProblem(config)),
      Verdicts.quietVerdict(machine, node),
    ]
  })

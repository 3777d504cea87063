// Starts one engine process or worker thread, gives its two message directions and what it prints; knows nothing of
// requests. Used by EngineHost. Closing the scope asks the engine to stop, waits, then kills it: after that its memory is back.
import { type ChildProcess, fork } from "node:child_process"
import type { Readable } from "node:stream"
import { Worker } from "node:worker_threads"
import { Context, Deferred, Effect, type Scope } from "effect"
import { ConfinedFolder } from "#confine/ConfinedFolder.ts"
import { launch } from "#confine/Launch.ts"
import { CompileCache, compiledCodeEnvironment } from "#domain/models/CompileCache.ts"
import { exceptionReason } from "#domain/process/PlainLine.ts"
import { CurrentProcessHome, type ProcessHome } from "#domain/process/ProcessHome.ts"
import type { FromEngine, ToEngine } from "#engines/protocol/EngineProtocol.ts"
import * as Tree from "../Tree.ts"
import { engineConfinement } from "./EngineConfinement.ts"
import { OutgoingBatch } from "./OutgoingBatch.ts"
import * as StartPriority from "./ProcessPriority.ts"

export interface EngineExit {
  readonly code: number | null
  readonly signal: string | null
}

export interface EngineProcess {
  /** Operating system process id; undefined for a thread. */
  readonly pid: number | undefined
  readonly send: (message: ToEngine) => void
  /** Ends it now, without asking. A thread in native code cannot be ended without ending the whole node. */
  readonly kill: () => void
  readonly exited: Effect.Effect<EngineExit>
  readonly hasExited: () => boolean
}

/**
 * glibc's own thresholds move with what a program frees, up to 32 MiB, and then a heap of any size stays resident; fixed
 * ones keep that bounded while a model serves (unloading ends the process, which gives everything back anyway). Up to
 * 1 MiB comes from the heap, whose free top may be 64 MiB: with the 128 KiB that were here before, the tensors of a small
 * recogniser went back to the system after every call (126,683 page faults for a file of 60 s, against 4, and 0.97 s
 * against 0.71). A tensor of a large model still does, and its call takes so long that the faults do not count.
 */
const allocatorEnvironment = { MALLOC_MMAP_THRESHOLD_: "1048576", MALLOC_TRIM_THRESHOLD_: "67108864" }

/**
 * One helper thread for V8, which has four otherwise: while an engine starts, they compile and collect garbage beside its
 * main thread and so take more than a core from those who are served (text 0.70 s instead of 0.84 for its load, speech
 * 1.18 instead of 1.32, and 15 to 20 MB less; measured on two cores). Once it serves, its work is in native code.
 */
const processFlags = ["--disable-warning=ExperimentalWarning", "--v8-pool-size=1"]

const entry = new URL("../../engines/engineMain.ts", import.meta.url)

/** What an engine process may see of the environment: enough to find libraries and devices, no secrets. */
const inherited = [
  "PATH",
  "HOME",
  "LANG",
  "LD_LIBRARY_PATH",
  "CUDA_VISIBLE_DEVICES",
  "CUDA_HOME",
  "NVIDIA_VISIBLE_DEVICES",
  "VK_DRIVER_FILES",
]

const childEnvironment = (own: Readonly<Record<string, string>>): NodeJS.ProcessEnv => {
  const env: NodeJS.ProcessEnv = { ...allocatorEnvironment }
  for (const name of inherited) if (process.env[name] !== undefined) env[name] = process.env[name]
  return { ...env, ...own }
}

/** Bytes that the engine printed. Called on the gateway's event loop; must be quick and must not throw. */
export type OutputTaker = (stream: "stdout" | "stderr", chunk: Buffer) => void

/** After its exit, a process's last lines are waited for this long: another process may hold its pipe open. A guess. */
const lastLinesMs = 50

/** Reads both streams for as long as they are open: an engine must never wait because its pipe is full. */
const readOutput = (
  streams: { readonly stdout: Readable | null; readonly stderr: Readable | null },
  onOutput: OutputTaker,
): void => {
  for (const name of ["stdout", "stderr"] as const) {
    streams[name]?.on("data", (chunk: Buffer) => onOutput(name, chunk))
    // A pipe that breaks ends with its process.
    streams[name]?.on("error", () => {})
  }
}

interface Started {
  readonly handle: EngineProcess
  readonly done: Deferred.Deferred<EngineExit>
}

interface Surroundings {
  readonly compiled: string | undefined
  readonly home: ProcessHome | undefined
}

const startProcess = (
  { environment, files, onMessage, onOutput = () => {} }: EngineProcessOptions,
  { compiled, home }: Surroundings,
): Started => {
  const done = Deferred.makeUnsafe<EngineExit>()
  const room = new ConfinedFolder(home)
  const inside = childEnvironment({
    ...compiledCodeEnvironment(compiled),
    ...environment,
    TMPDIR: room.path,
  })
  const { env, execArgv, execPath } = launch(
    engineConfinement({ room: room.path, compiled, home, files: Object.values(files ?? {}), env: inside }),
    processFlags,
  )
  const child: ChildProcess = fork(entry, [], {
    serialization: "advanced",
    execPath,
    execArgv,
    env: { ...inside, ...env },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  })
  readOutput(child, onOutput)
  const atStart = StartPriority.lower(child.pid)
  child.on("message", (message) => {
    const told = message as FromEngine
    if (told.t === "loaded") atStart.restore()
    onMessage(told)
  })
  const finish = (exit: EngineExit) => {
    void room.remove()
    Deferred.doneUnsafe(done, Effect.succeed(exit))
  }
  child.on("exit", (code, signal) => {
    atStart.forget()
    const overdue = setTimeout(() => finish({ code, signal }), lastLinesMs)
    // Both pipes have been read to their end.
    child.once("close", () => {
      clearTimeout(overdue)
      finish({ code, signal })
    })
  })
  // Failing to start, or to write to a process that is just dying; `exit` follows in the second case.
  child.on("error", () => {
    if (child.pid === undefined) finish({ code: null, signal: null })
  })
  const handle: EngineProcess = {
    pid: child.pid,
    send: new OutgoingBatch<ToEngine>((messages) => {
      if (child.connected) child.send(messages, undefined, undefined, () => {})
    }).send,
    kill: () => void child.kill("SIGKILL"),
    exited: Deferred.await(done),
    hasExited: () => Deferred.isDoneUnsafe(done),
  }
  return { handle, done }
}

const startThread = ({ onMessage, onOutput = () => {} }: EngineProcessOptions): Started => {
  const done = Deferred.makeUnsafe<EngineExit>()
  // As engines/shared/onnx/OnnxSession.ts does in a process: the native library reads the environment of the whole
  // process, of which a thread has only a copy.
  process.env.ORT_DISABLE_TELEMETRY = "1"
  // What native code prints in a thread goes to the node's own standard error; only JavaScript's lines come here.
  const worker = new Worker(entry, {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdout: true,
    stderr: true,
  })
  readOutput(worker, onOutput)
  worker.on("message", (message: FromEngine) => onMessage(message))
  const finish = (exit: EngineExit) => Deferred.doneUnsafe(done, Effect.succeed(exit))
  worker.on("exit", (code) => finish({ code, signal: null }))
  // An uncaught exception ends the thread; `exit` follows. Unlike in a process, Node does not print it.
  worker.on("error", (cause) => onOutput("stderr", Buffer.from(`${exceptionReason(cause)}\n`)))
  const handle: EngineProcess = {
    pid: undefined,
    send: new OutgoingBatch<ToEngine>((messages) => worker.postMessage(messages)).send,
    kill: () => void worker.terminate(),
    exited: Deferred.await(done),
    hasExited: () => Deferred.isDoneUnsafe(done),
  }
  return { handle, done }
}

export interface EngineProcessOptions {
  readonly isolation: "process" | "thread"
  /** Variables of a process beside those that it inherits; a thread has the node's own. */
  readonly environment: Readonly<Record<string, string>>
  /** Its weights, absolute paths by role: what a process may read besides code and libraries. */
  readonly files?: Readonly<Record<string, string>>
  /** Called on the gateway's event loop for each message, in order. */
  readonly onMessage: (message: FromEngine) => void
  /** What it prints; read and dropped where absent. */
  readonly onOutput?: OutputTaker
}

/** Starts an engine. */
export const start = (options: EngineProcessOptions): Effect.Effect<EngineProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      if (options.isolation === "thread") return startThread(options)
      const surroundings = { compiled: (yield* CompileCache)(), home: yield* CurrentProcessHome }
      return startProcess(options, surroundings)
    }),
    ({ done, handle }) =>
      Effect.gen(function* () {
        if (Deferred.isDoneUnsafe(done)) return
        yield* Effect.sync(() => handle.send({ t: "stop" }))
        const polite = yield* handle.exited.pipe(Effect.timeoutOption(Tree.engineStopMs))
        if (polite._tag === "Some") return
        yield* Effect.sync(() => handle.kill())
        // Whoever closed the scope looks whether it has ended; a process in the hands of a driver may not.
        yield* handle.exited.pipe(Effect.timeoutOption(Tree.engineKillMs))
      }),
  ).pipe(Effect.map(({ handle }) => handle))

/** How hosts start their engines; tests bring engines that cost nothing. */
export const EngineStarter = Context.Reference<
  (options: EngineProcessOptions) => Effect.Effect<EngineProcess, never, Scope.Scope>
>("edgewise/actors/EngineStarter", { defaultValue: () => start })

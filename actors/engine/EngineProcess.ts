// Starts one engine process or worker thread, and connects its messages and its output; knows nothing of requests.
// Closing the scope sends the engine a stop, waits, then kills it: after that its memory is free. Messages of an engine
// are typed and not validated again: it is edgewise's own program, and EngineHost compares its kind when it has loaded.
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
import type { EngineKind } from "#engines/protocol/Verbs.ts"
import { engineKillMs, engineStopMs } from "../Specifications.ts"
import { engineConfinement } from "./EngineConfinement.ts"
import { OutgoingBatch } from "./OutgoingBatch.ts"
import * as StartPriority from "./ProcessPriority.ts"

export interface EngineExit {
  readonly code: number | null
  readonly signal: string | null
}

export interface EngineProcess<K extends EngineKind> {
  /** Operating system process id; undefined for a thread. */
  readonly pid: number | undefined
  readonly send: (message: ToEngine<K>) => void
  /** Ends it at once. A thread in native code cannot be ended without ending the whole node. */
  readonly kill: () => void
  readonly exited: Effect.Effect<EngineExit>
  readonly hasExited: () => boolean
}

/**
 * glibc's own thresholds change with what a program frees, up to 32 MiB, and then a heap of any size stays resident; fixed
 * ones bound that while a model serves (unloading ends the process, which frees everything anyway). Up to
 * 1 MiB comes from the heap, whose free top may be 64 MiB: with the 128 KiB that were here before, the tensors of a small
 * recogniser went back to the system after every call (126,683 page faults for a file of 60 s, against 4, and 0.97 s
 * against 0.71). A tensor of a large model still does, and its call takes so long that the faults do not count.
 */
const allocatorEnvironment = { MALLOC_MMAP_THRESHOLD_: "1048576", MALLOC_TRIM_THRESHOLD_: "67108864" }

/**
 * One helper thread for V8, which has four otherwise: while an engine starts, they compile and collect garbage beside its
 * main thread and so take more than a core from requests that are being served (text 0.70 s instead of 0.84 for its load, speech
 * 1.18 instead of 1.32, and 15 to 20 MB less; measured on two cores). Once it serves, its work is in native code.
 */
const processFlags = ["--disable-warning=ExperimentalWarning", "--v8-pool-size=1"]

const entry = new URL("../../engines/engineMain.ts", import.meta.url)

/** The environment variables that an engine process gets: enough to find libraries and devices, no secrets. */
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
type OutputTaker = (stream: "stdout" | "stderr", chunk: Buffer) => void

/** After its exit, the last lines of a process are awaited for this long: another process may hold its pipe open. A guess. */
const lastLinesMs = 50

/** Reads both streams while they are open: an engine must never wait because its pipe is full. */
const readOutput = (
  streams: { readonly stdout: Readable | null; readonly stderr: Readable | null },
  onOutput: OutputTaker,
): void => {
  for (const name of ["stdout", "stderr"] as const) {
    streams[name]?.on("data", (chunk: Buffer) => onOutput(name, chunk))
    // A broken pipe ends with its process.
    streams[name]?.on("error", () => {})
  }
}

interface StartedProcess<K extends EngineKind> {
  readonly handle: EngineProcess<K>
  readonly done: Deferred.Deferred<EngineExit>
}

interface Surroundings {
  readonly compiled: string | undefined
  readonly home: ProcessHome | undefined
}

const startProcess = <K extends EngineKind>(
  { environment, files = [], onMessage, onOutput = () => {} }: EngineProcessOptions<K>,
  { compiled, home }: Surroundings,
): StartedProcess<K> => {
  const done = Deferred.makeUnsafe<EngineExit>()
  const folder = new ConfinedFolder(home)
  const inside = childEnvironment({
    ...compiledCodeEnvironment(compiled),
    ...environment,
    TMPDIR: folder.path,
  })
  const { env, execArgv, execPath } = launch(
    engineConfinement({
      folder: folder.path,
      compiled,
      home,
      files,
      env: inside,
    }),
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
  child.on("message", (message: FromEngine<K>) => {
    if (message.type === "loaded") atStart.restore()
    onMessage(message)
  })
  const finish = (exit: EngineExit) => {
    void folder.remove()
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
  // Failing to start, or to write to a process that is ending; `exit` follows in the second case.
  child.on("error", () => {
    if (child.pid === undefined) finish({ code: null, signal: null })
  })
  const handle: EngineProcess<K> = {
    pid: child.pid,
    send: new OutgoingBatch<ToEngine<K>>((messages) => {
      if (child.connected) child.send(messages, undefined, undefined, () => {})
    }).send,
    kill: () => void child.kill("SIGKILL"),
    exited: Deferred.await(done),
    hasExited: () => Deferred.isDoneUnsafe(done),
  }
  return { handle, done }
}

const startThread = <K extends EngineKind>({
  onMessage,
  onOutput = () => {},
}: EngineProcessOptions<K>): StartedProcess<K> => {
  const done = Deferred.makeUnsafe<EngineExit>()
  // As engines/shared/onnx/OnnxSession.ts does in a process: the native library reads the environment of the whole
  // process, of which a thread has only a copy.
  process.env.ORT_DISABLE_TELEMETRY = "1"
  // Native code in a thread prints to the node's own standard error; only JavaScript's lines come here.
  const worker = new Worker(entry, {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdout: true,
    stderr: true,
  })
  readOutput(worker, onOutput)
  worker.on("message", (message: FromEngine<K>) => onMessage(message))
  const finish = (exit: EngineExit) => Deferred.doneUnsafe(done, Effect.succeed(exit))
  worker.on("exit", (code) => finish({ code, signal: null }))
  // An uncaught exception ends the thread; `exit` follows. Unlike in a process, Node does not print it.
  worker.on("error", (cause) => onOutput("stderr", Buffer.from(`${exceptionReason(cause)}\n`)))
  const handle: EngineProcess<K> = {
    pid: undefined,
    send: new OutgoingBatch<ToEngine<K>>((messages) => worker.postMessage(messages)).send,
    kill: () => void worker.terminate(),
    exited: Deferred.await(done),
    hasExited: () => Deferred.isDoneUnsafe(done),
  }
  return { handle, done }
}

export interface EngineProcessOptions<K extends EngineKind> {
  readonly isolation: "process" | "thread"
  /** Variables of a process beside those that it inherits; a thread has the node's own. */
  readonly environment: Readonly<Record<string, string>>
  /** Its weights, absolute paths: what a process may read besides code and libraries. */
  readonly files?: ReadonlyArray<string>
  /** Called on the gateway's event loop for each message, in order. */
  readonly onMessage: (message: FromEngine<K>) => void
  /** Receives its output; if absent, the output is read and dropped. */
  readonly onOutput?: OutputTaker
}

/** Starts an engine. */
export const start = <K extends EngineKind>(
  options: EngineProcessOptions<K>,
): Effect.Effect<EngineProcess<K>, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      if (options.isolation === "thread") return startThread(options)
      const surroundings = { compiled: (yield* CompileCache)(), home: yield* CurrentProcessHome }
      return startProcess(options, surroundings)
    }),
    ({ done, handle }) =>
      Effect.gen(function* () {
        if (Deferred.isDoneUnsafe(done)) return
        yield* Effect.sync(() => handle.send({ type: "stop" }))
        const polite = yield* handle.exited.pipe(Effect.timeoutOption(engineStopMs))
        if (polite._tag === "Some") return
        yield* Effect.sync(() => handle.kill())
        // The caller checks `hasExited`: a process that waits in a driver may not end.
        yield* handle.exited.pipe(Effect.timeoutOption(engineKillMs))
      }),
  ).pipe(Effect.map(({ handle }) => handle))

/** How hosts start their engines; tests replace it with engines inside their own process. */
export const EngineStarter = Context.Reference<
  <K extends EngineKind>(
    options: EngineProcessOptions<K>,
  ) => Effect.Effect<EngineProcess<K>, never, Scope.Scope>
>("edgewise/actors/EngineStarter", { defaultValue: () => start })

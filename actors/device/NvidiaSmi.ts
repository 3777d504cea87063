// Runs `nvidia-smi` and remembers what it said: the node's only source of what NVIDIA devices have and use. Asked when
// the node starts, when a model is placed, loaded or unloaded, and by operators; never by a request. Every run is bounded
// in time and output, and a run that failed is not repeated at once. Parsing is domain/NvidiaSmi's.
import { execFile } from "node:child_process"
import { Context, Effect, Layer, Semaphore } from "effect"
import {
  gpuColumns,
  type NvidiaGpu,
  type NvidiaProcess,
  parseGpus,
  parseProcesses,
  processColumns,
} from "#domain/models/NvidiaReport.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"

export interface NvidiaReading {
  readonly gpus: ReadonlyArray<NvidiaGpu>
  readonly processes: ReadonlyArray<NvidiaProcess>
  /** When the program was started, milliseconds of the monotonic clock. */
  readonly atMs: number
  /** Why there is nothing to see: no such program, a driver that fails, an answer that cannot be read. */
  readonly problem: string | undefined
}

/** A busy driver takes a second or two; one that takes longer is in trouble. A guess. */
const timeoutMs = 5_000
/** Some hundred bytes a GPU and a process. */
const maxOutputBytes = 1024 * 1024
/** A dashboard that polls every second costs a run every two. A guess. */
const freshMs = 2_000
/** After a failure: a broken driver blocks for its whole deadline, again and again. A guess. */
const retryMs = 30_000

interface Ran {
  readonly text: string
  readonly problem: string | undefined
  /** There is no such program, and there will be none until the node is started again. */
  readonly absent: boolean
}

const runOnce = (command: string, args: ReadonlyArray<string>): Promise<Ran> =>
  new Promise((resolve) => {
    const options = { timeout: timeoutMs, killSignal: "SIGKILL", maxBuffer: maxOutputBytes } as const
    execFile(command, args, options, (error, stdout) => {
      if (error === null) return resolve({ text: stdout, problem: undefined, absent: false })
      const absent = error.code === "ENOENT" || error.code === "EACCES"
      // The program explains itself on standard output.
      const said = stdout.trim().split("\n")[0]?.slice(0, 200) ?? ""
      const how = error.killed === true ? `no answer in ${timeoutMs} ms` : `exit status ${error.code}`
      resolve({ text: "", problem: absent ? `${command} is not there` : `${how} ${said}`.trim(), absent })
    })
  })

const nothing = (problem: string, atMs: number): NvidiaReading => ({
  gpus: [],
  processes: [],
  atMs,
  problem,
})

const query = async (command: string, atMs: number): Promise<{ reading: NvidiaReading; absent: boolean }> => {
  const format = "--format=csv,noheader,nounits"
  const asked = await runOnce(command, [`--query-gpu=${gpuColumns.join(",")}`, format])
  if (asked.problem !== undefined) return { reading: nothing(asked.problem, atMs), absent: asked.absent }
  const gpus = parseGpus(asked.text)
  if ("problem" in gpus) return { reading: nothing(gpus.problem, atMs), absent: false }
  if (gpus.rows.length === 0) return { reading: nothing("no devices", atMs), absent: false }
  const running = await runOnce(command, [`--query-compute-apps=${processColumns.join(",")}`, format])
  // Devices without their processes are worth showing; half a list of processes is not.
  const processes = running.problem === undefined ? parseProcesses(running.text) : { rows: [] }
  const rows = "problem" in processes ? [] : processes.rows
  const problem = "problem" in processes ? processes.problem : running.problem
  return { reading: { gpus: gpus.rows, processes: rows, atMs, problem }, absent: false }
}

export class NvidiaSmi extends Context.Service<
  NvidiaSmi,
  {
    /** At most two seconds old. */
    readonly reading: Effect.Effect<NvidiaReading>
    /** Asked now, for a before and an after. */
    readonly fresh: Effect.Effect<NvidiaReading>
  }
>()("edgewise/actors/NvidiaSmi") {
  /** `command` is a program's path or name; tests bring their own. */
  static readonly layer = (command = "nvidia-smi") => Layer.sync(NvidiaSmi, () => make(command))

  /** A machine without NVIDIA devices. */
  static readonly none = Layer.sync(NvidiaSmi, () => {
    const reading = Effect.succeed(nothing("not asked for", 0))
    return NvidiaSmi.of({ reading, fresh: reading })
  })
}

const make = (command: string): NvidiaSmi["Service"] => {
  let last: { readonly reading: NvidiaReading; readonly validUntilMs: number } | undefined
  let absent = false
  // One run at a time: callers that come meanwhile get that run's result.
  const gate = Semaphore.makeUnsafe(1)
  const ask = Effect.gen(function* () {
    const beganMs = yield* monotonicMs
    const answer = yield* Effect.promise(() => query(command, beganMs))
    absent = answer.absent
    const failed = answer.reading.gpus.length === 0
    const nowMs = yield* monotonicMs
    last = { reading: answer.reading, validUntilMs: nowMs + (failed ? retryMs : freshMs) }
    return answer.reading
  })
  const reading = gate.withPermit(
    Effect.flatMap(monotonicMs, (nowMs) =>
      last !== undefined && (absent || nowMs < last.validUntilMs) ? Effect.succeed(last.reading) : ask,
    ),
  )
  const fresh = gate.withPermit(
    Effect.flatMap(monotonicMs, (nowMs) =>
      // A machine without devices, or with a broken driver, has nothing newer to say.
      last !== undefined && last.reading.gpus.length === 0 && (absent || nowMs < last.validUntilMs)
        ? Effect.succeed(last.reading)
        : ask,
    ),
  )
  return NvidiaSmi.of({ reading, fresh })
}

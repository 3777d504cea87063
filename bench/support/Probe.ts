// What a measured process tells about itself: processor time and event-loop delay. Part of the desks of the raw
// server and of the gateway (through gatewayProbe). Costs nothing between two questions, unless the loop is watched.
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

export interface CpuReading {
  /** Monotonic, of this process. */
  readonly atMs: number
  /** User and system time of all threads since the start, microseconds. */
  readonly cpuUs: number
}

/** How the event loop was held up, milliseconds. */
export interface LoopDelay {
  /** By how much a timer of `resolutionMs` was late, for whatever reason: on a busy machine mostly its turn came late. */
  readonly p99: number
  readonly longest: number
  /** Longest processor time of the main thread between two turns of a timer: what it held the loop up with itself. */
  readonly longestWork: number
}

/** A thousand wake-ups a second: fine enough for a rule of 10 ms, and not in the runs that measure CPU. */
const resolutionMs = 1
const nsPerMs = 1e6
const usPerMs = 1e3

/** Of the calling thread. Node 22.19 and later; its types are older. */
const threadCpuMs = (): number => {
  const { system, user } = (
    process as typeof process & { readonly threadCpuUsage: () => NodeJS.CpuUsage }
  ).threadCpuUsage()
  return (user + system) / usPerMs
}

class LoopWatch {
  readonly #late: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs })
  readonly #timer: NodeJS.Timeout
  #cpuMs = threadCpuMs()
  #longestWork = 0

  constructor() {
    this.#late.enable()
    this.#timer = setInterval(() => this.#turn(), resolutionMs)
  }

  #turn(): void {
    const nowMs = threadCpuMs()
    this.#longestWork = Math.max(this.#longestWork, nowMs - this.#cpuMs)
    this.#cpuMs = nowMs
  }

  end(): LoopDelay {
    this.#late.disable()
    clearInterval(this.#timer)
    // The histogram holds whole intervals; what is above the resolution is delay.
    const late = (ns: number) => Math.max(0, ns / nsPerMs - resolutionMs)
    return {
      p99: late(this.#late.percentile(99)),
      longest: late(this.#late.max),
      longestWork: this.#longestWork,
    }
  }
}

/** Memory in use: everything that nobody needs is collected first, and what the collector keeps in reserve given back. */
export interface MemoryReading {
  readonly residentBytes: number
  readonly heapBytes: number
}

let collect: ((how: { readonly type: "major"; readonly flavor: "last-resort" }) => void) | undefined

const memory = (): MemoryReading => {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc")
    collect = runInNewContext("gc") as NonNullable<typeof collect>
  }
  collect({ type: "major", flavor: "last-resort" })
  const { heapUsed, rss } = process.memoryUsage()
  return { residentBytes: rss, heapBytes: heapUsed }
}

let watch: LoopWatch | undefined

export const probe = {
  cpu: (): CpuReading => {
    const { system, user } = process.cpuUsage()
    return { atMs: performance.now(), cpuUs: user + system }
  },

  memory,

  watchLoop: (): void => {
    watch?.end()
    watch = new LoopWatch()
  },

  /** Since `watchLoop`, and ends it. */
  loopDelay: (): LoopDelay | undefined => {
    const delay = watch?.end()
    watch = undefined
    return delay
  },
}

export type ProbeDesk = typeof probe

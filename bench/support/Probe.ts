// Readings of a measured process: CPU time, event-loop delay, memory. Commands of the raw server and of the gateway
// (through gatewayProbe). Costs nothing between two commands, unless the loop is watched.
import { type IntervalHistogram, monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { koffi } from "#engines/llama/native/Koffi.ts"

interface CpuReading {
  /** Monotonic time of this process. */
  readonly atMs: number
  /** User and system time of all threads since the start, microseconds. */
  readonly cpuUs: number
}

/** Delay of the event loop, milliseconds. */
export interface LoopDelay {
  /** How late a timer of `resolutionMs` was, for any reason; on a busy machine mostly because the process was not scheduled. */
  readonly p99: number
  readonly longest: number
  /** Longest CPU time of the main thread between two ticks of a timer: blocking by the process itself. */
  readonly longestWork: number
  /** What the garbage collector took of that. */
  readonly longestCollected: number
}

/** 1,000 wake-ups a second: fine enough for a limit of 10 ms. Off in runs that measure CPU time. */
const resolutionMs = 1
const nsPerMs = 1e6
const msPerSecond = 1e3

/** Linux's number of the clock of the calling thread's CPU time. */
const threadCpuClock = 3

/**
 * CPU time of the calling thread, exact. `process.threadCpuUsage` advances with the kernel's ticks of 4 ms while the thread runs, so that
 * two turns of 5 ms look like one of 8.
 */
export const threadCpuMs = (() => {
  const now = new BigInt64Array(2)
  const read = koffi.load("libc.so.6").func("int clock_gettime(int, _Out_ int64_t *)")
  return (): number => {
    read(threadCpuClock, now)
    return Number(now[0]) * msPerSecond + Number(now[1]) / nsPerMs
  }
})()

class LoopWatch {
  readonly #late: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs })
  readonly #timer: NodeJS.Timeout
  #cpuMs = threadCpuMs()
  #atMs = performance.now()
  #longestWork = 0
  #longest = { fromMs: 0, toMs: 0 }
  /** When collections began, and how long each took: milliseconds of `performance.now`. */
  readonly #collections: Array<{ readonly startTime: number; readonly duration: number }> = []
  readonly #collector = new PerformanceObserver((list) => this.#collections.push(...list.getEntries()))

  constructor() {
    this.#late.enable()
    this.#collector.observe({ entryTypes: ["gc"] })
    this.#timer = setInterval(() => this.#turn(), resolutionMs)
  }

  #turn(): void {
    const nowMs = threadCpuMs()
    const atMs = performance.now()
    if (nowMs - this.#cpuMs > this.#longestWork) {
      this.#longestWork = nowMs - this.#cpuMs
      this.#longest = { fromMs: this.#atMs, toMs: atMs }
    }
    this.#cpuMs = nowMs
    this.#atMs = atMs
  }

  end(): LoopDelay {
    this.#late.disable()
    clearInterval(this.#timer)
    this.#collections.push(...this.#collector.takeRecords())
    this.#collector.disconnect()
    const { fromMs, toMs } = this.#longest
    const collected = this.#collections.filter(({ startTime }) => startTime >= fromMs && startTime < toMs)
    // The histogram holds whole intervals; the part above the resolution is delay.
    const late = (ns: number) => Math.max(0, ns / nsPerMs - resolutionMs)
    return {
      p99: late(this.#late.percentile(99)),
      longest: late(this.#late.max),
      longestWork: this.#longestWork,
      longestCollected: collected.reduce((sum, { duration }) => sum + duration, 0),
    }
  }
}

/** Memory in use after a garbage collection and after the collector has released its reserve. */
interface MemoryReading {
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

  /** The delay since `watchLoop`, which ends with this call. */
  loopDelay: (): LoopDelay | undefined => {
    const delay = watch?.end()
    watch = undefined
    return delay
  },
}

export type ProbeCommands = typeof probe

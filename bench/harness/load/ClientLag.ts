// Whether the load client itself was the bottleneck: the delay of its event loop, how late it sent what was due, and the
// processor time that it used. A late client makes a server look slow.
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks"
import { Latencies } from "../figures/Latencies.ts"

export interface ClientCost {
  /** Delay of the client's event loop, milliseconds; times are late by up to this. */
  readonly lagP99Ms: number
  readonly lagMaxMs: number
  /** From the scheduled moment of a request until it was sent, except where it waited for a place in flight. */
  readonly sendLateP99Ms: number
  /** Processor time of the client, milliseconds for each request. */
  readonly cpuMsPerRequest: number
  /** Share of one core that the client used. */
  readonly coreShare: number
  /** The sentence that explains why the client limited the result; absent if it did not. */
  readonly bottleneck?: string
}

/** How often the delay is measured, and what is subtracted from it. Measuring takes 1.7 % of a core, at 1 ms 2.4 % (measured). */
const resolutionMs = 5
const nsPerMs = 1e6

/** Beyond these the client counts as a bottleneck: the times of requests are then no longer those of the server. Guesses. */
const mostLagMs = 25
const mostCoreShare = 0.85

export class ClientWatch {
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs })
  readonly #late = new Latencies()
  readonly #startedMs = performance.now()
  readonly #cpu = process.cpuUsage()

  constructor() {
    this.#delay.enable()
  }

  sentLate(ms: number): void {
    this.#late.record(Math.max(0, ms))
  }

  end(requests: number): ClientCost {
    this.#delay.disable()
    const { system, user } = process.cpuUsage(this.#cpu)
    const cpuMs = (system + user) / 1000
    const lagMs = (ns: number) => Math.max(0, (Number.isFinite(ns) ? ns : 0) / nsPerMs - resolutionMs)
    const lagP99 = lagMs(this.#delay.percentile(99))
    const coreShare = cpuMs / Math.max(1, performance.now() - this.#startedMs)
    const bottleneck =
      coreShare > mostCoreShare
        ? `the client used ${Math.round(100 * coreShare)} % of a core`
        : lagP99 > mostLagMs
          ? `the client's event loop was late by ${lagP99.toFixed(1)} ms (p99)`
          : undefined
    return {
      lagP99Ms: lagP99,
      lagMaxMs: lagMs(this.#delay.max),
      sendLateP99Ms: this.#late.at(99),
      cpuMsPerRequest: requests === 0 ? 0 : cpuMs / requests,
      coreShare,
      ...(bottleneck === undefined ? {} : { bottleneck }),
    }
  }
}

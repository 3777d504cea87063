// Detects an engine that hangs: pings it, and ends when it has been silent for longer than its deadline without computing,
// or computes without end. A load that is silent for too long counts as hung, too.
import { Effect } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { Silence } from "#domain/process/Silence.ts"
import { processorMsOf } from "../device/ProcessorTime.ts"
import { EngineDied } from "./EngineDied.ts"

/** Longest pause between two pings. */
const longestPauseMs = 2_000

export class Heartbeat {
  readonly #runtime: ModelEntry["runtime"]
  readonly #ping: (n: number) => void
  readonly #pid: () => number | undefined
  #lastReceivedMs = 0
  /** True once the engine has loaded. */
  ready = false
  /** The engine opens large files beside its requests. */
  opening = false

  /** `pid`: the engine's process; undefined for a thread. */
  constructor(runtime: ModelEntry["runtime"], ping: (n: number) => void, pid: () => number | undefined) {
    this.#runtime = runtime
    this.#ping = ping
    this.#pid = pid
  }

  /** A message of the engine has arrived. */
  received(nowMs: number): void {
    this.#lastReceivedMs = nowMs
  }

  /** Pings on a quarter of the deadline and ends when the engine counts as hung. */
  readonly watch: Effect.Effect<EngineDied> = Effect.gen({ self: this }, function* () {
    const { hangDeadlineMs, loadDeadlineMs } = this.#runtime
    const startedMs = performance.now()
    this.#lastReceivedMs = startedMs
    this.opening = false
    const silence = new Silence(hangDeadlineMs, loadDeadlineMs)
    for (let n = 0; ; n++) {
      this.#ping(n)
      yield* Effect.sleep(Math.min(longestPauseMs, hangDeadlineMs / 4, loadDeadlineMs / 4))
      const nowMs = performance.now()
      const because =
        this.ready && !this.opening ? this.#silent(silence, nowMs) : this.#late(startedMs, nowMs)
      if (because !== undefined) {
        return new EngineDied({
          reason: "hung",
          detail: because,
          ofRequest: true,
          counts: true,
        })
      }
    }
  })

  #silent(silence: Silence, nowMs: number): string | undefined {
    const pid = this.#pid()
    return silence.hungBecause({
      nowMs,
      receivedMs: this.#lastReceivedMs,
      processorMs: pid === undefined ? undefined : processorMsOf(pid),
    })
  }

  /** Loading is one long native call; how long it may take depends on the disk, so it has a deadline of its own. */
  #late(startedMs: number, nowMs: number): string | undefined {
    const silentMs = nowMs - (this.ready ? this.#lastReceivedMs : startedMs)
    return silentMs > this.#runtime.loadDeadlineMs ? `silent for ${Math.round(silentMs)} ms` : undefined
  }
}

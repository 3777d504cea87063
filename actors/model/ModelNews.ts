// What an operator is told of one model's life: a log line and a mark among the engine's output for each event, and the
// engine's own lines at their level. Called by Model as things happen; decides nothing.

import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { placementOf } from "#domain/models/Placement.ts"
import type { OperatorLine } from "#domain/process/OperatorLog.ts"
import { logEvents } from "#domain/process/OperatorLog.ts"
import { describeThreads } from "#domain/threads/ThreadChoice.ts"
import { type Grant, hostId } from "../device/Device.ts"
import { EngineOutput } from "../engine/EngineOutput.ts"
import type { HostView } from "./ModelSnapshot.ts"
import type { News } from "./ModelState.ts"

/** Lines of an engine that are logged a second; the ring keeps more. A guess: a crash's first lines say why. */
const outputLinesASecond = 10

/** How old an engine's last error may be to count as the cause of its death. A guess. */
const causeWithinMs = 2_000

/**
 * What CUDA says where a library has machine code for other cards only, and the driver is too old for the PTX from which it would
 * compile it. llama.cpp prints the place in its source after it and aborts.
 */
const noCodeForCard =
  /llama\.cpp: CUDA error: (?:the provided PTX was compiled with an unsupported toolchain|no kernel image is available)/

const noCodeReason =
  "llama.cpp's CUDA library has no code for this card with this driver; a newer driver helps, or a card of compute capability 8.6, 8.9, 12.0 or 12.1, or your own build of llama.cpp"

const megabytes = (bytes: number): number => Math.ceil(Math.max(0, bytes) / 1024 ** 2)

export class ModelNews {
  readonly output: EngineOutput
  readonly #entry: ModelEntry
  readonly #say: (line: OperatorLine) => void
  #device: string

  /** `output` is that of the model that this one replaces: lines keep their numbers. */
  constructor(entry: ModelEntry, say: (line: OperatorLine) => void, output?: EngineOutput) {
    this.#entry = entry
    this.#say = say
    this.#device = placementOf(entry) === "nvidia" ? "gpu" : hostId
    this.output =
      output ??
      new EngineOutput(({ level, stream, text }) =>
        say({
          event: "engine output",
          level,
          model: entry.id,
          reason: text,
          facts: { stream },
          aSecond: outputLinesASecond,
        }),
      )
  }

  /** The model's place on a device, for the lines that follow. */
  placed(grant: Grant): void {
    this.#device = [...grant.held().keys()].find((id) => id !== hostId) ?? hostId
  }

  /** Found at the node's start or at a reload of the catalog, without loading. */
  cannotBeLoaded(reason: string): void {
    this.#tell({ event: "model cannot be loaded", reason, action: this.#mend(reason) })
  }

  threadsLimited(reason: string): void {
    this.#tell({
      event: "model threads limited",
      reason,
      action: "leave runtime.threads out of the catalog entry: the node then chooses",
    })
  }

  /** `host`: its engine, if there is one. */
  report(news: News, host: HostView | undefined): void {
    switch (news.of) {
      case "loading":
        return this.#tell({ event: "model loading" })
      case "load failed":
        return this.#tell({
          event: "model load failed",
          reason: news.reason,
          action: this.#mend(news.reason),
        })
      case "refused": {
        const { device, freeBytes, wantedBytes } = news.refusal
        return this.#tell({
          event: "model refused for memory",
          reason: `needs ${megabytes(wantedBytes)} MB, ${megabytes(freeBytes)} MB are free on ${device}`,
          action:
            "unload another model, raise EDGEWISE_MEMORY_MB, or let idle models go with EDGEWISE_EVICT_IDLE=true",
        })
      }
      case "ready": {
        const { residentBytes = 0, restarts = 0 } = host?.gauges() ?? {}
        const threads = host?.threads
        const facts = {
          summary: news.summary,
          took_ms: Math.round(news.tookMs),
          resident_mb: megabytes(residentBytes),
          restarts,
          ...(threads === undefined
            ? {}
            : { threads: describeThreads(threads), threads_from: threads.source }),
        }
        return this.#tell({ event: "model ready", facts })
      }
      case "crashed":
      case "hung":
        return this.#tell({
          event: news.of === "hung" ? "engine hung" : "engine crashed",
          reason: news.detail,
          action: this.#readLogs(),
        })
      case "restarting":
        return this.#tell({ event: "engine restarting", reason: news.detail })
      case "given up":
        return this.#tell({
          event: "engine given up",
          reason: news.detail,
          action: `${this.#readLogs()}; edgewise models load ${this.#entry.id} tries again at once`,
        })
      case "unloaded": {
        const { freedBytes, tookMs, why } = news
        if (typeof why === "object")
          return this.#tell({ event: "model evicted", reason: `to make memory free for ${why.for}` })
        const facts = { freed_mb: megabytes(freedBytes), took_ms: Math.round(tookMs) }
        return this.#tell({ event: why === "idle" ? "model unloaded while idle" : "model unloaded", facts })
      }
      case "not unloaded":
        return this.#tell({
          event: "model not unloaded",
          reason: `its process has not ended and still holds ${megabytes(news.heldBytes)} MB`,
          action: "look for a driver that does not let the process go; a load starts a new process beside it",
        })
    }
  }

  /** `detail` with what the engine printed as it died. */
  withCause(detail: string): string {
    const noCode = this.output.lastError(causeWithinMs, noCodeForCard)
    if (noCode !== undefined) return `${detail}: ${noCodeReason}; it printed: ${noCode}`
    const said = this.output.lastError(causeWithinMs)
    return said === undefined ? detail : `${detail}; it printed: ${said}`
  }

  #tell(line: OperatorLine): void {
    const { event, facts = {}, reason } = line
    const more = Object.entries(facts).map(([name, value]) => `${name}=${value}`)
    const text = [reason === undefined ? event : `${event}: ${reason}`, ...more].join(" ")
    this.output.note(line.level ?? logEvents[event], text)
    this.#say({ ...line, model: this.#entry.id, device: this.#device })
  }

  #readLogs(): string {
    return `edgewise logs ${this.#entry.id} shows what the engine printed`
  }

  #mend(reason: string): string {
    return reason.includes("edgewise models pull")
      ? `edgewise models pull ${this.#entry.id}`
      : `mend what the reason says, then edgewise models load ${this.#entry.id}`
  }
}

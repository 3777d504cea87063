// One compute device of the node and its ledger: how much memory and how many CPU threads are promised to models.
// A claim is refused before anything is allocated, and given back with the claimer's scope.
// Today the host processor is the node's one device; a claim names no device because there is nothing to choose.
import { readFile } from "node:fs/promises"
import { availableParallelism, cpus, totalmem } from "node:os"
import { Context, Effect, Layer, Schema, type Scope } from "effect"

export class DeviceExhausted extends Schema.TaggedError<DeviceExhausted>()("DeviceExhausted", {
  resource: Schema.Literals(["memory"]),
  wantedBytes: Schema.Finite,
  freeBytes: Schema.Finite,
}) {}

export interface Claim {
  readonly modelId: string
  readonly memoryBytes: number
  readonly threads: number
}

export interface DeviceReading {
  readonly index: number
  readonly name: string
  readonly totalBytes: number
  readonly claimedBytes: number
  readonly threads: number
  readonly claimedThreads: number
}

/**
 * Share of the machine's memory that models may claim. The rest is the gateway's, the file cache's and the
 * system's. A guess; the estimate of a claim is a guess too, and leans high.
 */
const memoryShare = 0.9

/** Milliseconds of all processors since the system started. */
const processorTimes = () => {
  let idle = 0
  let total = 0
  for (const { times } of cpus()) {
    idle += times.idle
    total += times.idle + times.irq + times.nice + times.sys + times.user
  }
  return { idle, total }
}

/** The first thermal zone that Linux shows, in millidegrees. */
const temperatureFile = "/sys/class/thermal/thermal_zone0/temp"

const readTemperature = (): Promise<number> =>
  readFile(temperatureFile, "utf8").then(
    (text) => Math.round(Number(text) / 1000),
    () => 0,
  )

export class Device extends Context.Service<
  Device,
  {
    /** Memory is refused when it is not there; threads may be oversubscribed, since waiting models idle. */
    readonly claim: (claim: Claim) => Effect.Effect<void, DeviceExhausted, Scope.Scope>
    readonly reading: Effect.Effect<DeviceReading>
    /** Share of all processors' time in use since it was last asked, percent, rounded. */
    readonly utilization: Effect.Effect<number>
    /** Degrees Celsius; 0 where the system has no sensor that it shows. */
    readonly temperature: Effect.Effect<number>
  }
>()("edgewise/actors/Device") {
  /** The host processor. `totalBytes` is the machine's memory unless a test says otherwise. */
  static readonly layer = (totalBytes: number = totalmem()) =>
    Layer.sync(Device, () => {
      const budgetBytes = Math.floor(totalBytes * memoryShare)
      const claims = new Set<Claim>()
      const sum = (part: (claim: Claim) => number) =>
        [...claims].reduce((total, claim) => total + part(claim), 0)
      let last = processorTimes()
      return Device.of({
        claim: (claim) =>
          Effect.acquireRelease(
            Effect.suspend(() => {
              const freeBytes = budgetBytes - sum((other) => other.memoryBytes)
              if (claim.memoryBytes > freeBytes) {
                return new DeviceExhausted({ resource: "memory", wantedBytes: claim.memoryBytes, freeBytes })
              }
              claims.add(claim)
              return Effect.void
            }),
            () => Effect.sync(() => claims.delete(claim)),
          ),
        utilization: Effect.sync(() => {
          const before = last
          last = processorTimes()
          const total = last.total - before.total
          return total <= 0 ? 0 : Math.round((1 - (last.idle - before.idle) / total) * 100)
        }),
        temperature: Effect.promise(readTemperature),
        reading: Effect.sync(() => ({
          index: 0,
          name: cpus()[0]?.model ?? "host processor",
          totalBytes: budgetBytes,
          claimedBytes: sum((claim) => claim.memoryBytes),
          threads: availableParallelism(),
          claimedThreads: sum((claim) => claim.threads),
        })),
      })
    })
}

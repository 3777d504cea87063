// One compute device of the node and its ledger: how much memory and how many CPU threads are promised to models.
// A claim is refused before anything is allocated, and given back with the claimer's scope.
// Today the host processor is the node's one device; a claim names no device because there is nothing to choose.
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

export class Device extends Context.Service<
  Device,
  {
    /** Memory is refused when it is not there; threads may be oversubscribed, since waiting models idle. */
    readonly claim: (claim: Claim) => Effect.Effect<void, DeviceExhausted, Scope.Scope>
    readonly reading: Effect.Effect<DeviceReading>
  }
>()("edgewise/actors/Device") {
  /** The host processor. `totalBytes` is the machine's memory unless a test says otherwise. */
  static readonly layer = (totalBytes: number = totalmem()) =>
    Layer.sync(Device, () => {
      const budgetBytes = Math.floor(totalBytes * memoryShare)
      const claims = new Set<Claim>()
      const sum = (part: (claim: Claim) => number) =>
        [...claims].reduce((total, claim) => total + part(claim), 0)
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

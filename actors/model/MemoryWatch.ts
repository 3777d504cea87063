// Compares, once a second, what the node, its engines and its decoders hold with the memory budget, and applies the level
// of memory pressure that the host's device decides on.
import { Effect, Layer, Option } from "effect"
import { Decoder } from "#audio/Decoder.ts"
import { victimsOf } from "#domain/models/Eviction.ts"
import { isAtLeast, type MemoryLevel } from "#domain/models/MemoryLevel.ts"
import { startChild } from "../Child.ts"
import { Device, hostId } from "../device/Device.ts"
import { ownResidentBytes, privateBytesOf, residentBytesOf } from "../device/ResidentMemory.ts"
import * as Limits from "../Limits.ts"
import * as Specifications from "../Specifications.ts"
import { ModelRegistry } from "./ModelRegistry.ts"
import type { ModelSnapshot } from "./ModelSnapshot.ts"
import { Redeployment } from "./Redeployment.ts"

interface MemoryWatchOptions {
  /** Bytes in use; absent: what this process, its engines and its decoders have for themselves, asked of the system. */
  readonly usedBytes?: () => number
  readonly everyMs?: number
  /** Whether idle models may be unloaded. */
  readonly evicts?: boolean
}

/** The decoder processes that run now; none where there is no decoder. */
export const decoderPids: Effect.Effect<() => ReadonlyArray<number>> = Effect.map(
  Effect.serviceOption(Decoder),
  Option.match({ onNone: () => () => [], onSome: ({ pids }) => pids }),
)

const sumOf = (pids: ReadonlyArray<number>, bytesOf: (pid: number) => number): number =>
  pids.reduce((sum, pid) => sum + bytesOf(pid), 0)

/**
 * Resident bytes of this process, of every engine process and of the decoder processes. Shared pages count once for each.
 */
export const heldByNode = (views: ReadonlyArray<ModelSnapshot>, decoders: ReadonlyArray<number>): number =>
  views.reduce(
    // A thread's memory is this process's own.
    (sum, { entry, host }) => sum + (entry.runtime.isolation === "thread" ? 0 : (host?.heldBytes() ?? 0)),
    ownResidentBytes() + sumOf(decoders, residentBytesOf),
  )

/**
 * Applies a level to the models: they drop their caches, and one idle model is unloaded. The next reading shows if that was
 * enough.
 */
const apply = (
  registry: ModelRegistry["Service"],
  leaving: ReadonlyArray<ModelSnapshot>,
  level: MemoryLevel,
  evicts: boolean,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const isLean = isAtLeast(level, "lean")
    const views = registry.all()
    for (const { host } of [...views, ...leaving]) host?.lean(isLean)
    if (!evicts || !isLean) return Effect.void
    const idle = views.flatMap(({ entry }) => registry.model(entry.id)?.evictable(hostId) ?? [])
    const cheapest = victimsOf(idle, 1)?.[0]
    const model = cheapest === undefined ? undefined : registry.model(cheapest.id)
    return model === undefined
      ? Effect.void
      : Effect.asVoid(model.retire("requests: the node's memory is nearly full"))
  })

/** Of that, what the system could not take back by dropping mapped files: what a full node dies of. */
export const privateOfNode = (views: ReadonlyArray<ModelSnapshot>, decoders: ReadonlyArray<number>): number =>
  views.reduce(
    (sum, { host }) => sum + (host?.privateBytes() ?? 0),
    // 0 where the system does not tell it apart.
    (privateBytesOf(process.pid) || ownResidentBytes()) + sumOf(decoders, privateBytesOf),
  )

export const memoryWatch = (
  options: MemoryWatchOptions,
): Layer.Layer<never, never, Device | ModelRegistry | Redeployment> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const registry = yield* ModelRegistry
      const redeployment = yield* Redeployment
      const device = yield* Device
      const { budgetBytes } = device.host()
      const decoders = yield* decoderPids
      const usedBytes =
        options.usedBytes ?? (() => privateOfNode([...registry.all(), ...redeployment.leaving()], decoders()))
      let before: MemoryLevel = "calm"
      const observe = Effect.gen(function* () {
        const share = usedBytes() / budgetBytes
        const level = yield* device.observe(share)
        if (level !== before) {
          const facts = { from: before, to: level, percent: Math.round(share * 100) }
          yield* Effect.logWarning("memory ladder").pipe(Effect.annotateLogs(facts))
          before = level
          yield* apply(registry, redeployment.leaving(), level, options.evicts ?? false)
        } else if (level !== "calm")
          yield* apply(registry, redeployment.leaving(), level, options.evicts ?? false)
      })
      yield* startChild({
        ...Specifications.worker,
        name: "memory watch",
        run: ({ ready }) =>
          Effect.andThen(
            Effect.sync(ready),
            Effect.forever(Effect.andThen(observe, Effect.sleep(options.everyMs ?? Limits.memoryWatchMs))),
          ),
      })
    }),
  )

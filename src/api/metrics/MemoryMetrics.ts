// The metrics of the node's memory and threads: the memory ledger's claims and the level of memory pressure. The
// meaning of the numbers is in docs/operations.md.
import { Effect } from "effect"
import { Device } from "#actors/device/Device.ts"
import { memoryLevels } from "#domain/models/MemoryLevel.ts"
import { alone, type Family, gauge } from "./PrometheusText.ts"

export const memoryFamilies: Effect.Effect<ReadonlyArray<Family>, never, Device> = Effect.gen(function* () {
  const device = yield* Device
  const { budgetBytes, claimedBytes, claimedThreads, threads } = device.host()
  const { level, share } = device.pressure()
  return [
    gauge("memory_budget_bytes", "Host memory that the node and its models may fill.", alone(budgetBytes)),
    gauge("memory_claimed_bytes", "Host memory that the ledger has promised to models.", alone(claimedBytes)),
    gauge(
      "memory_used_ratio",
      "Share of the budget that the node and its engines had for themselves when it was last looked at.",
      alone(Number(share.toFixed(4))),
    ),
    gauge(
      "memory_rung",
      "MemoryLevel of the memory ladder: 0 calm, 1 lean, 2 busy, 3 full.",
      alone(memoryLevels.indexOf(level)),
    ),
    gauge("cpu_threads", "CPU threads that there are for models.", alone(threads)),
    gauge(
      "cpu_threads_claimed",
      "CPU threads that the models that work at the moment share.",
      alone(claimedThreads),
    ),
  ]
})

// Neighbours of a suite: busy processes that end with it, also if it is killed.
import { fork } from "node:child_process"
import { once } from "node:events"
import { getPriority } from "node:os"
import { setTimeout as sleep } from "node:timers/promises"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type BesideOptions, startNeighbours } from "../../bench/run/Beside.ts"
import { childrenRunning } from "../support/process/ChildProcesses.ts"

const neighbours = (): ReadonlyArray<number> => childrenRunning("besideMain")

/** Little more than that of this process: on a busy machine nothing is left for the nicest. */
const nice = Math.min(19, getPriority() + 2)

it.live.skipIf(process.platform !== "linux")(
  "neighbours compute at their nice value, and end with the scope",
  () =>
    Effect.gen(function* () {
      const used = yield* Effect.scoped(
        Effect.gen(function* () {
          const { used } = yield* startNeighbours({ processes: 2, nice })
          const pids = neighbours()
          expect(pids.map((pid) => getPriority(pid))).toEqual([nice, nice])
          while ((yield* used).cores === 0) yield* Effect.sleep(50)
          return yield* used
        }),
      )
      expect(used).toMatchObject({ processes: 2, nice })
      expect(used.cores).toBeGreaterThan(0)
      expect(neighbours()).toEqual([])
    }),
)

it.live("neighbours that come and go compute for less time than those that do not", () =>
  Effect.gen(function* () {
    /** Starts one, and reads its processor time since then, milliseconds. */
    const started = Effect.fnUntraced(function* (more: Partial<BesideOptions> = {}) {
      const { used } = yield* startNeighbours({ processes: 1, nice: 0, ...more })
      const sinceMs = performance.now()
      return { used, spentMs: Effect.map(used, ({ cores }) => cores * (performance.now() - sinceMs)) }
    })
    const always = yield* started()
    const half = yield* started({ pulseMs: 200 })
    const spent = Effect.all([always.spentMs, half.spentMs], { concurrency: 2 })
    // Both over the same time, because other programs take more of the processors at one time than at another.
    const before = yield* spent
    let [all, some] = [0, 0]
    while (all < 1_500) {
      yield* Effect.sleep(200)
      const now = yield* spent
      all = now[0] - before[0]
      some = now[1] - before[1]
    }
    expect(yield* half.used).toMatchObject({ processes: 1, nice: 0, pulseMs: 200 })
    expect(some).toBeGreaterThan(0)
    expect(some).toBeLessThan(0.8 * all)
  }).pipe(Effect.scoped),
)

it.live("no neighbours cost nothing and never end a suite", () =>
  Effect.gen(function* () {
    const { died } = yield* startNeighbours({ processes: 0, nice: 0 })
    expect(yield* Effect.timeoutOption(died, 20)).toMatchObject({ _tag: "None" })
  }).pipe(Effect.scoped),
)

it("a neighbour ends when its bench is gone", async () => {
  const child = fork(new URL("../../bench/run/besideMain.ts", import.meta.url), ["19"], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  })
  child.send({ id: 1, name: "cpuUs", argument: undefined })
  await once(child, "message")
  await sleep(50)
  expect(child.exitCode).toBeNull()
  child.disconnect()
  expect(await once(child, "exit")).toEqual([1, null])
})

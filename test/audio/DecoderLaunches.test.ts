// Files that come at once: each decoder process is started in a turn of the event loop of its own.
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { expect } from "vitest"
import { makePool } from "#audio/DecoderPool.ts"
import type { DecoderProcess } from "#audio/DecoderProcess.ts"

it.live("starts one process in a turn of the event loop", () =>
  Effect.gen(function* () {
    let turn = 0
    let next = setImmediate(function count() {
      turn++
      next = setImmediate(count)
    })
    yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(next)))
    const startedIn: Array<number> = []
    const pool = yield* makePool({
      startProcess: () => {
        startedIn.push(turn)
        const fake = { pids: [], reusable: false, detach: () => {}, kill: () => {}, takeBack: async () => {} }
        return fake as unknown as DecoderProcess
      },
    })
    const ask = { user: "a", urgency: "interactive", continues: false } as const
    yield* Effect.forEach([1, 2, 3, 4], () => pool.borrow(ask), { concurrency: "unbounded" })
    expect(new Set(startedIn).size).toBe(4)
  }).pipe(Effect.scoped),
)

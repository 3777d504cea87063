// The decoder processes of a node: who has one, who waits for one, which are kept for the next files (all for a moment,
// one for a while). Used by Decoder; knows nothing of what is decoded.
import { Effect, FiberMap, Semaphore } from "effect"
import { CompiledCode } from "#domain/CompiledCode.ts"
import { DecoderFailed } from "./AudioErrors.ts"
import { DecoderProcess, startDecoder } from "./DecoderProcess.ts"

export interface PoolOptions {
  /** Decodes at a time, about 100 MB each; the rest wait in line. Jobs must not be allowed to take them all. */
  readonly maxProcesses?: number
  /** Length of that line; past it, `Busy`. */
  readonly maxWaiting?: number
  /** How long the last idle process is kept. A guess: starting one costs 0.2 s, keeping one 90 MB. */
  readonly idleMs?: number
  /** How long the others are kept: files that come together come again together. A guess. */
  readonly spareMs?: number
  /** Starts a process; tests replace it to be able to end one. */
  readonly startProcess?: (onDeath: () => void) => DecoderProcess
}

/** Ends all of them with the scope. */
export const makePool = Effect.fnUntraced(function* (options: PoolOptions) {
  const { idleMs = 300_000, maxProcesses = 4, maxWaiting = 64, spareMs = 15_000 } = options
  const compiled = yield* CompiledCode
  const startProcess =
    options.startProcess ?? ((onDeath) => new DecoderProcess(onDeath, () => startDecoder(compiled())))
  const scope = yield* Effect.scope
  const permits = yield* Semaphore.make(maxProcesses)
  /** By number: FiberMap takes two objects without visible fields for the same key. */
  const living = new Map<DecoderProcess, number>()
  let launched = 0
  /** The clocks of the idle processes, by the same numbers. */
  const expiries = yield* FiberMap.make<number>()
  /** The one that was busy last is taken first, so that the others can be done without. */
  let idle: ReadonlyArray<DecoderProcess> = []
  let waiting = 0

  const isIdle = (process: DecoderProcess): boolean => idle.includes(process)
  const leaveIdle = (process: DecoderProcess) => {
    idle = idle.filter((each) => each !== process)
  }

  const launch = (): DecoderProcess => {
    const started = startProcess(() => {
      living.delete(started)
      leaveIdle(started)
    })
    living.set(started, launched++)
    return started
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const each of living.keys()) each.kill()
    }),
  )

  /** Keeps a process for the next file, and ends it when none comes. */
  const keep = (kept: DecoderProcess) => {
    const patienceMs = idle.length === 0 ? idleMs : spareMs
    idle = [...idle, kept]
    const expire = Effect.sync(() => {
      if (!isIdle(kept)) return
      leaveIdle(kept)
      kept.kill()
    })
    return FiberMap.run(expiries, living.get(kept) ?? -1, Effect.andThen(Effect.sleep(patienceMs), expire))
  }
  /** A process for one decode, until the scope closes; `Busy` where the line is full. */
  const borrow = Effect.gen(function* () {
    if (waiting >= maxWaiting) {
      return yield* new DecoderFailed({ reason: "Busy", detail: `${waiting} files wait to be decoded` })
    }
    waiting++
    yield* Semaphore.takeScoped(permits, 1).pipe(Effect.ensuring(Effect.sync(() => waiting--)))
    return yield* Effect.acquireRelease(
      Effect.suspend(() => {
        const taken = idle.at(-1) ?? launch()
        leaveIdle(taken)
        return Effect.as(FiberMap.remove(expiries, living.get(taken) ?? -1), taken)
      }),
      (taken) => {
        taken.detach()
        if (taken.reusable && scope.state._tag !== "Closed") return keep(taken)
        return Effect.sync(() => taken.kill())
      },
    )
  })

  /** Starts a process in the background if none is idle. */
  const warm = Effect.suspend(() =>
    idle.length === 0 && living.size < maxProcesses ? keep(launch()) : Effect.void,
  )
  return { borrow, warm }
})

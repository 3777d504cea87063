// The decoder processes of a node: which file has one, which waits, and which processes are kept idle for later files
// (one for a while, the others briefly). Users are served in rotation. If another user's file waits, a long file gives
// its process back after some time and continues later where it stopped.
import { Effect, FiberMap, type Scope, Semaphore } from "effect"
import { CurrentProcessHome } from "#domain/process/ProcessHome.ts"
import { FairQueue, type Place } from "#domain/queues/FairQueue.ts"
import { DecoderFailed } from "./AudioErrors.ts"
import { binding, DecoderProcess, startDecoder } from "./DecoderProcess.ts"
import type { DecoderProgram } from "./decoder/DecoderWire.ts"

export interface PoolOptions {
  /** Concurrent decodes, about 100 MB each; others wait in the queue. Jobs must not take all of them. */
  readonly maxProcesses?: number
  /** Length of the queue. Beyond it a decode fails with `Busy`. */
  readonly maxWaiting?: number
  /** Time that a decode keeps its process at least. A guess: starting a process takes 0.2 s. */
  readonly minHoldMs?: number
  /** How long the last idle process is kept. A guess: starting one costs 0.2 s, keeping one 90 MB. */
  readonly idleMs?: number
  /** How long the other idle processes are kept: files often come in groups. A guess. */
  readonly spareMs?: number
  /**
   * What the processes decode with: found out while the node starts, and awaited by the first decode. Default: the
   * package node-av.
   */
  readonly program?: Effect.Effect<DecoderProgram, DecoderFailed>
  /** Starts a process. Tests replace it to end a process at will. */
  readonly startProcess?: (onDeath: () => void, program: DecoderProgram) => DecoderProcess
}

/** A decode's use of a process. */
export interface Lease {
  readonly process: DecoderProcess
  /** To be called at the first samples. A resumed decode first skips all earlier audio, which may take long. */
  readonly delivers: () => void
}

/** A request for a process. */
export interface Ask extends Place {
  /** Called when the process is withdrawn. Absent if the decode cannot be resumed. */
  readonly onPreempted?: () => void
}

interface Held {
  readonly ask: Ask
  readonly process: DecoderProcess
  readonly sinceMs: number
  /** Time of its first samples. Undefined before. */
  deliversMs: number | undefined
  over: boolean
}

/**
 * A resumed decode keeps its process this many times as long as it took to reach its position, so at most a sixth of
 * the work is repeated.
 */
const holdPerReach = 5

/** How often decodes are compared with the queue. A guess: far below the shortest hold. */
const watchMs = 200

/**
 * The decode that must give its process to a waiting one, if any: it can be resumed, has had its time, and is
 * background work or of a user with more processes than the waiting user. Of several, the one that can be resumed
 * fastest. Pure.
 */
export const victimOf = <H extends Pick<Held, "ask" | "sinceMs" | "deliversMs">>(
  held: ReadonlyArray<H>,
  waitingUser: string,
  nowMs: number,
  minHoldMs: number,
): H | undefined => {
  const count = (user: string): number =>
    held.filter(({ ask }) => ask.user === user && ask.urgency !== "background").length
  const own = count(waitingUser)
  const reachMs = ({ deliversMs, sinceMs }: H): number => (deliversMs ?? Number.POSITIVE_INFINITY) - sinceMs
  const may = held.filter(
    (one) =>
      one.ask.onPreempted !== undefined &&
      nowMs - one.sinceMs >= Math.max(minHoldMs, holdPerReach * reachMs(one)) &&
      (one.ask.urgency === "background" || (one.ask.user !== waitingUser && count(one.ask.user) > own)),
  )
  const rank = (one: H): number =>
    one.ask.urgency === "background" ? Number.POSITIVE_INFINITY : count(one.ask.user)
  return may.toSorted((a, b) => (rank(a) === rank(b) ? reachMs(a) - reachMs(b) : rank(b) - rank(a)))[0]
}

/** Completes in the next turn of the event loop. */
const nextTurn = Effect.callback<void>((resume) => {
  const soon = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(soon))
})

/** Makes the pool. All processes end with the scope. */
export const makePool = Effect.fnUntraced(function* (options: PoolOptions) {
  const { idleMs = 300_000, maxProcesses = 4, maxWaiting = 64, minHoldMs = 1_000, spareMs = 15_000 } = options
  const home = yield* CurrentProcessHome
  const startProcess =
    options.startProcess ??
    ((onDeath, chosen) => new DecoderProcess(onDeath, (folder) => startDecoder(folder, home, chosen), home))
  let program = binding
  const chosen = Effect.tap(options.program ?? Effect.succeed(binding), (found) =>
    Effect.sync(() => {
      program = found
    }),
  )
  const scope = yield* Effect.scope
  /** Keyed by number: FiberMap takes two objects without visible fields for the same key. */
  const living = new Map<DecoderProcess, number>()
  let launched = 0
  /** Expiry timers of the idle processes, by the same numbers. */
  const expiries = yield* FiberMap.make<number>()
  /** The most recently used is taken first, so that the others expire. */
  let idle: ReadonlyArray<DecoderProcess> = []
  const held = new Set<Held>()
  /** Starting a process holds the event loop for some milliseconds: several files that come at once start theirs in a turn each. */
  const launches = Semaphore.makeUnsafe(1)
  const queue = new FairQueue<{ readonly start: () => void; readonly refuse: () => void }>(maxWaiting)

  const isIdle = (process: DecoderProcess): boolean => idle.includes(process)
  const leaveIdle = (process: DecoderProcess) => {
    idle = idle.filter((each) => each !== process)
  }

  const launch = (): DecoderProcess => {
    const started = startProcess(() => {
      living.delete(started)
      leaveIdle(started)
    }, program)
    living.set(started, launched++)
    return started
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const each of living.keys()) each.kill()
    }),
  )

  /** Keeps a process for the next file; it ends when none comes in time. */
  const keep = (kept: DecoderProcess) => {
    const keepMs = idle.length === 0 ? idleMs : spareMs
    idle = [...idle, kept]
    const expire = Effect.sync(() => {
      if (!isIdle(kept)) return
      leaveIdle(kept)
      kept.kill()
    })
    return FiberMap.run(expiries, living.get(kept) ?? -1, Effect.andThen(Effect.sleep(keepMs), expire))
  }
  const backgroundAllowed = (): boolean =>
    [...held].filter(({ ask }) => ask.urgency === "background").length < Math.max(1, maxProcesses - 1)

  const pump = (): void => {
    if (held.size >= maxProcesses) return
    queue.shift({ interactive: true, background: backgroundAllowed() })?.start()
  }

  const take = (ask: Ask): Held => {
    const process = idle.at(-1) ?? launch()
    leaveIdle(process)
    const one: Held = { ask, process, sinceMs: performance.now(), deliversMs: undefined, over: false }
    held.add(one)
    return one
  }

  /** Frees the decode's place for the next one. Does nothing if the decode has lost it already. */
  const giveBack = (one: Held): void => {
    if (one.over) return
    one.over = true
    held.delete(one)
    pump()
  }

  /** Completes when the process has the decode's files no more. */
  const release = Effect.fnUntraced(function* (one: Held) {
    const { process } = one
    process.detach()
    const isIdleNow = () => process.reusable && scope.state._tag !== "Closed"
    if (!isIdleNow()) process.kill()
    yield* Effect.promise(() => process.takeBack())
    // The process was withdrawn and killed.
    if (one.over) return
    if (isIdleNow()) yield* keep(process)
    else process.kill()
    giveBack(one)
  })

  /**
   * Gives a process to one decode, until the scope closes or the process is withdrawn. Fails with `Busy` if the queue
   * is full, and with `Absent` if nothing can decode on this machine.
   */
  const borrow = Effect.fnUntraced(function* (ask: Ask): Effect.fn.Return<Lease, DecoderFailed, Scope.Scope> {
    yield* chosen
    if (idle.length === 0) yield* launches.withPermit(nextTurn)
    let mine: Held | undefined
    // Added before waiting, so that an interruption at any moment releases the place.
    yield* Effect.addFinalizer(() => (mine === undefined ? Effect.void : release(mine)))
    const one = yield* Effect.callback<Held, DecoderFailed>((resume) => {
      const begin = (): void => {
        mine = take(ask)
        resume(Effect.succeed(mine))
      }
      const free = held.size < maxProcesses && !queue.hasInteractive()
      if (free && (ask.urgency !== "background" || backgroundAllowed())) return begin()
      const refuse = (): void => {
        const detail = `${queue.length} files wait to be decoded`
        resume(Effect.fail(new DecoderFailed({ reason: "Busy", detail })))
      }
      const waiting = { start: begin, refuse }
      const joined = queue.join(waiting, ask)
      if (!joined.taken) return refuse()
      joined.displaced?.refuse()
      return Effect.sync(() => void queue.leave(waiting))
    })
    yield* FiberMap.remove(expiries, living.get(one.process) ?? -1)
    return {
      process: one.process,
      delivers: () => {
        one.deliversMs ??= performance.now()
      },
    }
  })

  /** Withdraws a process from a file that can be resumed later. */
  const preempt = (): void => {
    const user = queue.nextUser
    if (user === undefined || held.size < maxProcesses) return
    const victim = victimOf([...held], user, performance.now(), minHoldMs)
    if (victim === undefined) return
    victim.process.detach()
    victim.process.kill()
    victim.ask.onPreempted?.()
    giveBack(victim)
  }
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(watchMs), Effect.sync(preempt))))

  /** Starts a process in the background if none is idle. */
  const warm = Effect.matchEffect(chosen, {
    // The decode itself says why it is refused.
    onFailure: () => Effect.void,
    onSuccess: () => (idle.length === 0 && living.size < maxProcesses ? keep(launch()) : Effect.void),
  })
  /** Ids of the running processes, and of the programs that they run. */
  const pids = (): ReadonlyArray<number> => [...living.keys()].flatMap((each) => each.pids)
  return { borrow, pids, ready: chosen, warm }
})

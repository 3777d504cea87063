// The decoder processes of a node: which file has one, which waits, and which processes are kept for the next files (all
// for a moment, one for a while). Users take turns. A long file that has had a process for a while gives it back where
// another user's file waits: it goes on later, at the place where it stopped. Used by Decoder; knows nothing of what is decoded.
import { Effect, FiberMap, type Scope } from "effect"
import { CurrentProcessHome } from "#domain/process/ProcessHome.ts"
import { type Place, WaitingLine } from "#domain/queues/WaitingLine.ts"
import { DecoderFailed } from "./AudioErrors.ts"
import { DecoderProcess, startDecoder } from "./DecoderProcess.ts"

export interface PoolOptions {
  /** Decodes at a time, about 100 MB each; the rest wait in the queue. Jobs must not be allowed to take them all. */
  readonly maxProcesses?: number
  /** Length of the queue; past it, `Busy`. */
  readonly maxWaiting?: number
  /** A decode has its process for this long before it may have to give it back. A guess: a process starts in 0.2 s. */
  readonly minHoldMs?: number
  /** How long the last idle process is kept. A guess: starting one costs 0.2 s, keeping one 90 MB. */
  readonly idleMs?: number
  /** How long the others are kept: files that come together come again together. A guess. */
  readonly spareMs?: number
  /** Starts a process; tests replace it to be able to end one. */
  readonly startProcess?: (onDeath: () => void) => DecoderProcess
}

/** What a decode has of a process. */
export interface Lease {
  readonly process: DecoderProcess
  /** The first samples came. A decode that is resumed passes over all that came before, which may have taken long. */
  readonly delivers: () => void
}

/** What a decode asks for. */
export interface Ask extends Place {
  /** Tells the decode that its process is taken away. Absent where it cannot be resumed. */
  readonly onPreempted?: () => void
}

interface Held {
  readonly ask: Ask
  readonly process: DecoderProcess
  readonly sinceMs: number
  /** When its first samples came; undefined before. */
  deliversMs: number | undefined
  over: boolean
}

/** A resumed decode keeps its process this many times as long as it took to reach its place: a sixth of the work is repeated at most. */
const holdPerReach = 5

/** How often held processes are compared with what waits. A guess: far below the shortest hold. */
const watchMs = 200

/**
 * The decode that has to give its process back to a waiting one, if any: one that can be resumed, has had its time, and is
 * background work or of a user that holds more than the waiting user. Of several, the one that is resumed soonest. Pure.
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

/** Ends all of them with the scope. */
export const makePool = Effect.fnUntraced(function* (options: PoolOptions) {
  const { idleMs = 300_000, maxProcesses = 4, maxWaiting = 64, minHoldMs = 1_000, spareMs = 15_000 } = options
  const home = yield* CurrentProcessHome
  const startProcess =
    options.startProcess ??
    ((onDeath) => new DecoderProcess(onDeath, (folder) => startDecoder(folder, home), home))
  const scope = yield* Effect.scope
  /** By number: FiberMap takes two objects without visible fields for the same key. */
  const living = new Map<DecoderProcess, number>()
  let launched = 0
  /** The timers of the idle processes, by the same numbers. */
  const expiries = yield* FiberMap.make<number>()
  /** The one that was busy last is taken first, so that the others can be done without. */
  let idle: ReadonlyArray<DecoderProcess> = []
  const held = new Set<Held>()
  const line = new WaitingLine<{ readonly start: () => void; readonly refuse: () => void }>(maxWaiting)

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
  const backgroundAllowed = (): boolean =>
    [...held].filter(({ ask }) => ask.urgency === "background").length < Math.max(1, maxProcesses - 1)

  const pump = (): void => {
    if (held.size >= maxProcesses) return
    line.shift({ interactive: true, background: backgroundAllowed() })?.start()
  }

  const take = (ask: Ask): Held => {
    const process = idle.at(-1) ?? launch()
    leaveIdle(process)
    const one: Held = { ask, process, sinceMs: performance.now(), deliversMs: undefined, over: false }
    held.add(one)
    return one
  }

  /** Gives the place to the next decode; does nothing for a decode that has lost it already. */
  const giveBack = (one: Held): void => {
    if (one.over) return
    one.over = true
    held.delete(one)
    pump()
  }

  const release = (one: Held): Effect.Effect<void> =>
    Effect.suspend(() => {
      // Its process has been taken away and is dead.
      if (one.over) return Effect.void
      const { process } = one
      process.detach()
      const kept = process.reusable && scope.state._tag !== "Closed"
      return Effect.andThen(
        kept ? keep(process) : Effect.sync(() => process.kill()),
        Effect.sync(() => giveBack(one)),
      )
    })

  /** A process for one decode, until the scope closes or it has to be given back; `Busy` where the queue is full. */
  const borrow = Effect.fnUntraced(function* (ask: Ask): Effect.fn.Return<Lease, DecoderFailed, Scope.Scope> {
    let mine: Held | undefined
    // Before waiting: an interruption at any moment finds the place, whatever became of it.
    yield* Effect.addFinalizer(() => (mine === undefined ? Effect.void : release(mine)))
    const one = yield* Effect.callback<Held, DecoderFailed>((resume) => {
      const begin = (): void => {
        mine = take(ask)
        resume(Effect.succeed(mine))
      }
      const free = held.size < maxProcesses && !line.hasInteractive
      if (free && (ask.urgency !== "background" || backgroundAllowed())) return begin()
      const refuse = (): void => {
        const detail = `${line.length} files wait to be decoded`
        resume(Effect.fail(new DecoderFailed({ reason: "Busy", detail })))
      }
      const waiting = { start: begin, refuse }
      const joined = line.join(waiting, ask)
      if (!joined.taken) return refuse()
      joined.displaced?.refuse()
      return Effect.sync(() => void line.leave(waiting))
    })
    yield* FiberMap.remove(expiries, living.get(one.process) ?? -1)
    return {
      process: one.process,
      delivers: () => {
        one.deliversMs ??= performance.now()
      },
    }
  })

  /** Takes a process away from a file that can do without for a while. */
  const preempt = (): void => {
    const user = line.nextUser
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
  const warm = Effect.suspend(() =>
    idle.length === 0 && living.size < maxProcesses ? keep(launch()) : Effect.void,
  )
  /** Of the processes that run. */
  const pids = (): ReadonlyArray<number> => [...living.keys()].flatMap(({ pid }) => pid ?? [])
  return { borrow, pids, warm }
})

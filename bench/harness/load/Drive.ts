// Sends requests by a plan and collects what became of each. Two loads:
//
// - Open loop: requests are due at moments that do not depend on the server. One that cannot be sent, because as many as
//   allowed are in flight, waits here, and its latency still counts from its scheduled moment. So a stall of the
//   server shows in every request that was due during it (no coordinated omission).
// - Closed loop: a number of clients, each of which sends its next request when the last one was answered.
//
// Everything is bounded: the time, the number of requests, and those in flight.
import { setTimeout as sleep } from "node:timers/promises"
import { poissonArrivals } from "./Arrivals.ts"
import { type ClientCost, ClientWatch } from "./ClientLag.ts"

export type Load =
  | { readonly loop: "open"; readonly ratePerSecond: number }
  | { readonly loop: "closed"; readonly clients: number }

export interface DrivePlan {
  readonly load: Load
  /** Requests that are due in this time from the start are sent but not counted. */
  readonly warmupMs: number
  /** Time after the warm-up in which requests begin. */
  readonly durationMs: number
  /** Requests that are counted, at most. */
  readonly requests: number
  readonly maxInFlight: number
  /** After the last one began, requests have this long to end. */
  readonly drainMs: number
  readonly seed: number
}

/** One request, as the driver sees it. */
export interface Sent<Outcome> {
  readonly index: number
  /** Milliseconds from the start of the measured time; negative in the warm-up. */
  readonly scheduledMs: number
  readonly endMs: number
  readonly counted: boolean
  readonly outcome: Outcome
}

export interface Driven {
  /** From the first counted moment to the end of the last request, milliseconds. */
  readonly elapsedMs: number
  readonly warmupRequests: number
  readonly mostInFlight: number
  /** Requests that were due but never sent, because the run ended first. */
  readonly neverSent: number
  readonly client: ClientCost
}

export interface Issue {
  readonly index: number
  /** On the clock of performance.now(). */
  readonly scheduledAtMs: number
  /** Which client of a closed loop sends it; 0 in an open one. */
  readonly client: number
  /** Ends the request: the run is over or was interrupted. */
  readonly signal: AbortSignal
}

interface Running<Outcome> {
  readonly plan: DrivePlan
  /** Performs a request; must not reject. */
  readonly issue: (request: Issue) => Promise<Outcome>
  readonly failed: (outcome: Outcome) => boolean
  readonly onOutcome: (sent: Sent<Outcome>) => void
  readonly onProgress: (share: number) => void
  readonly signal: AbortSignal
}

/** A client of a closed loop waits this long after a failure. Otherwise it would send thousands a second to a server that refuses. */
const afterFailureMs = 100

/** A guess: the length of a live session's window. */
const mostSpreadMs = 1_000

/** Waits for a moment of performance.now(). Timers are late by up to a millisecond; that counts as latency. */
const until = async (atMs: number, signal: AbortSignal): Promise<void> => {
  const waitMs = atMs - performance.now()
  if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => {})
}

export const drive = async <Outcome>(running: Running<Outcome>): Promise<Driven> => {
  const { failed, issue, onOutcome, onProgress, plan, signal } = running
  const watch = new ClientWatch()
  const ending = new AbortController()
  const onInterrupt = () => ending.abort()
  signal.addEventListener("abort", onInterrupt)
  const startMs = performance.now()
  const countedFromMs = startMs + plan.warmupMs
  const lastMs = countedFromMs + plan.durationMs
  let index = 0
  let counted = 0
  let inFlight = 0
  let mostInFlight = 0
  let endedMs = countedFromMs
  let warmupRequests = 0
  const pending = new Set<Promise<boolean>>()

  /** Returns whether the request failed. */
  const start = (scheduledAtMs: number, client = 0): Promise<boolean> => {
    const isCounted = scheduledAtMs >= countedFromMs
    if (isCounted) counted++
    else warmupRequests++
    inFlight++
    mostInFlight = Math.max(mostInFlight, inFlight)
    const at = index++
    const one = issue({ index: at, scheduledAtMs, client, signal: ending.signal }).then((outcome) => {
      inFlight--
      pending.delete(one)
      const nowMs = performance.now()
      if (isCounted) endedMs = Math.max(endedMs, nowMs)
      onOutcome({
        index: at,
        scheduledMs: scheduledAtMs - countedFromMs,
        endMs: nowMs - countedFromMs,
        counted: isCounted,
        outcome,
      })
      return failed(outcome)
    })
    pending.add(one)
    return one
  }

  const progress = setInterval(() => {
    const byTime = (performance.now() - startMs) / (plan.warmupMs + plan.durationMs)
    onProgress(Math.min(1, Math.max(byTime, counted / plan.requests)))
  }, 100)
  progress.unref()

  let neverSent = 0
  /** The run has its number of requests, or was interrupted, before its time was over. */
  let isCutShort = false
  /** After the last request was due: waits for all, then ends what is left. */
  const drain = async (): Promise<void> => {
    const timer = setTimeout(() => ending.abort(), plan.drainMs)
    await Promise.all(pending)
    clearTimeout(timer)
  }

  const open = async (ratePerSecond: number): Promise<void> => {
    /** Due but not sent, oldest first: moments only, at most as many as the plan has requests. */
    const waiting: Array<number> = []
    let next = 0
    const sendWaiting = (): void => {
      while (next < waiting.length && inFlight < plan.maxInFlight && !ending.signal.aborted)
        send(waiting[next++]!)
    }
    const send = (scheduledAtMs: number): void => {
      void start(scheduledAtMs).then(sendWaiting)
    }
    let due = 0
    for (const atMs of poissonArrivals(ratePerSecond, plan.warmupMs + plan.durationMs, plan.seed)) {
      const scheduledAtMs = startMs + atMs
      if (scheduledAtMs >= countedFromMs && ++due > plan.requests) {
        isCutShort = true
        break
      }
      await until(scheduledAtMs, ending.signal)
      if (ending.signal.aborted) return
      if (inFlight < plan.maxInFlight) {
        watch.sentLate(performance.now() - scheduledAtMs)
        send(scheduledAtMs)
      } else waiting.push(scheduledAtMs)
    }
    const timer = setTimeout(() => ending.abort(), plan.drainMs)
    while (pending.size > 0) await Promise.all(pending)
    clearTimeout(timer)
    neverSent = waiting.slice(next).filter((moment) => moment >= countedFromMs).length
  }

  const closed = async (clients: number): Promise<void> => {
    // The first requests are spread, so that not all replies are at the same place at the same time.
    const spreadMs = Math.min(plan.warmupMs, mostSpreadMs)
    const client = async (_: unknown, nth: number): Promise<void> => {
      await until(startMs + (nth * spreadMs) / clients, ending.signal)
      while (!ending.signal.aborted && performance.now() < lastMs && counted < plan.requests) {
        if (await start(performance.now(), nth))
          await until(performance.now() + afterFailureMs, ending.signal)
      }
    }
    const stopAt = setTimeout(() => ending.abort(), plan.warmupMs + plan.durationMs + plan.drainMs)
    await Promise.all(Array.from({ length: clients }, client))
    clearTimeout(stopAt)
    isCutShort = counted >= plan.requests
    await drain()
  }

  try {
    if (plan.load.loop === "open") await open(plan.load.ratePerSecond)
    else await closed(plan.load.clients)
  } finally {
    clearInterval(progress)
    signal.removeEventListener("abort", onInterrupt)
  }
  return {
    // A load that had its whole time is measured over at least that, also if the last arrival came earlier.
    elapsedMs: Math.max(1, endedMs - countedFromMs, isCutShort || signal.aborted ? 0 : plan.durationMs),
    warmupRequests,
    mostInFlight,
    neverSent,
    client: watch.end(counted + warmupRequests),
  }
}

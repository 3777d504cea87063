// Decides which urgency may start on the free slots of one engine, how many of them a request takes, and whether requests compete for
// it. Reads the requests that run, and keeps only times.
import type { Allowed, Place, Urgency } from "#domain/queues/FairQueue.ts"
import type { EngineKind, Request } from "#engines/protocol/Verbs.ts"
import * as Limits from "../Limits.ts"

/** How many slots of its engine a request takes. */
export const slotsOf: { readonly [K in EngineKind]: (request: Request<K>) => number } = {
  /** One for each reply that is generated. */
  text: ({ bestOf = 1, replies = 1 }) => Math.max(replies, bestOf),
  speech: () => 1,
  transcription: () => 1,
  embedding: () => 1,
  detection: () => 1,
}

/** The requests that have a slot. */
interface Running {
  readonly size: number
  values(): ReadonlyArray<{ readonly place: Place }>
}

export class SlotPolicy {
  readonly #running: Running
  readonly #holdsBackground: () => boolean
  /** Slots of the last engine that was ready. */
  slots = 0
  /** Slots of the requests that run. A request starts on one free slot, so the last one may take more than there are. */
  taken = 0
  /** Whether there is an engine that serves requests. */
  ready = false
  #backgroundStartedMs = Number.NEGATIVE_INFINITY
  #interactiveStartedMs = Number.NEGATIVE_INFINITY
  /** When a live session last requested a slot. */
  #liveRequestedMs = Number.NEGATIVE_INFINITY
  /** The interactive request that last had to wait for a slot. */
  #lastWaiting = { user: "", atMs: Number.NEGATIVE_INFINITY }

  /** @param holdsBackground whether background work has to wait at present */
  constructor(running: Running, holdsBackground: () => boolean) {
    this.#running = running
    this.#holdsBackground = holdsBackground
  }

  /** A request has arrived. */
  requested(urgency: Urgency, nowMs: number): void {
    if (urgency === "live") this.#liveRequestedMs = nowMs
  }

  /** A request has to wait for a slot. */
  waits({ urgency, user }: Place, sinceMs: number): void {
    if (urgency === "interactive") this.#lastWaiting = { user, atMs: sinceMs }
  }

  /** A request has got a slot. */
  started(urgency: Urgency, nowMs: number): void {
    if (urgency === "interactive") this.#interactiveStartedMs = nowMs
    if (urgency === "background") this.#backgroundStartedMs = nowMs
  }

  /** Whether a live session or another user needs the engine: then a long request should be short and repeated. */
  isContended(user: string): boolean {
    const { atMs, user: other } = this.#lastWaiting
    const nowMs = performance.now()
    return (
      nowMs - this.#liveRequestedMs < Limits.contendedMs ||
      (other !== user && nowMs - atMs < Limits.contendedMs)
    )
  }

  /** Whether a slot is free. */
  hasFreeSlot(): boolean {
    return this.ready && this.taken < this.slots
  }

  /** Whether a new request may start at once: a slot is free for its urgency, and no waiting request goes first. */
  mayStart(urgency: Urgency, interactiveWaits: boolean): boolean {
    if (!this.hasFreeSlot()) return false
    if (urgency === "live") return true
    if (interactiveWaits) return false
    return urgency === "interactive" ? this.#interactiveAllowed() : this.#backgroundAllowed()
  }

  /** Which waiting requests may start on a free slot. */
  allowed(): Allowed {
    return {
      interactive: this.#interactiveAllowed(),
      background: this.#backgroundAllowed(),
      interactiveFirst: performance.now() - this.#interactiveStartedMs >= Limits.interactivePatienceMs,
    }
  }

  #runningOf(urgency: Urgency): number {
    let count = 0
    for (const { place } of this.#running.values()) if (place.urgency === urgency) count++
    return count
  }

  /** Files leave one slot of several to live sessions while there are any: a caption must not wait for a file's window. */
  #interactiveAllowed(): boolean {
    if (this.slots === 1 || performance.now() - this.#liveRequestedMs > Limits.contendedMs) return true
    return this.#running.size - this.#runningOf("live") < this.slots - 1
  }

  /**
   * Background work starts while no other request is served. On a busy node it still starts once in a while, or it would
   * never end. It may hold all slots but one, and the only one if there is no other.
   */
  #backgroundAllowed(): boolean {
    if (this.#holdsBackground() || !this.#interactiveAllowed()) return false
    const background = this.#runningOf("background")
    const others = this.#running.size - background
    if (others > 0 && performance.now() - this.#backgroundStartedMs < Limits.backgroundPatienceMs)
      return false
    return background < Math.max(1, this.slots - 1)
  }
}

// The load of a node's conversations on the engines that they join, by measurement: admits a conversation, or refuses it. Pure but for
// its own counters; time comes in as numbers.
//
// Engines of one machine share its processors, so their shares add up. What an engine is measured to take includes what the others
// keep it waiting, so other work counts as less capacity. Conversations in which nothing is said count little, and to other organizations
// than their own at most an equal share together.

import { mayTake, type Part } from "../queues/FairShare.ts"
import { LearnedCost } from "../queues/LearnedCost.ts"

/**
 * Share of the machine that conversations may need. Measured: above it one answer in twenty comes more than 60 ms late, because the
 * engines wait for each other (docs/conversation.md#how-many-at-once).
 */
export const fullShare = 0.6

/**
 * Shares up to which conversations are admitted: of an organization that is alone; of one that has less than an equal share beside
 * others; the first of an organization. Measured: at 0.7 (18 of 15 or 16) the p95 of an answer's delay is still below 60 ms, at 0.87
 * (23) it is not. 0.8 is between them: a guess.
 */
export const shares = { full: fullShare, fair: 0.7, first: 0.8 }

/** How long a conversation counts after its last turn or answer, milliseconds. Longer than most thoughts. A guess. */
export const activeMs = 30_000

/** How long one that has begun counts as if it was spoken in, milliseconds: most people speak at once. A guess. */
export const newMs = 10_000

/** What a conversation counts in which nothing is said, as a part of what it takes when it goes on. A guess. */
export const idlePart = 1 / 20

/** What is assumed of conversations before any was measured: a short question, a short answer. Guesses. */
const assumed = { cycleMs: 5_000, speechMs: 2_500 }

/** Shortest time between two answers that counts, milliseconds: shorter ones have been interrupted at once. */
const shortestCycleMs = 1_000

/** The newest eighth weighs as much as all before it. */
const smoothing = 1 / 8
const smoothed = (mean: number, value: number): number => mean + (value - mean) * smoothing

/** The ids of the models that a conversation joins. */
export interface ConversationParts {
  readonly hears: string
  readonly writes: string
  readonly speaks: string
}

/** What others have measured of an engine; 0 where nothing is known yet. */
interface MeasuredShares {
  /** Share of the transcription engine that one speaker takes. */
  readonly ears: (id: string) => number
  /** Computing time for a second of speech, seconds. */
  readonly voice: (id: string) => number
}

/** Work of a text engine for answers: calls at the same time share it. */
class TextCost {
  readonly #cost = new LearnedCost(0)
  #running = 0
  #chargedAtMs = 0
  /** Busy time since the last answer ended. */
  #unchargedMs = 0

  /** Of an answer, milliseconds; 0 where nothing is known yet. */
  answerMs(nowMs: number): number {
    return this.#cost.at(nowMs) ?? 0
  }

  began(nowMs: number): void {
    this.#charge(nowMs)
    this.#running++
  }

  ended(nowMs: number): void {
    this.#charge(nowMs)
    this.#running--
    const before = this.#cost.at(nowMs)
    this.#cost.learn(before === undefined ? this.#unchargedMs : smoothed(before, this.#unchargedMs), nowMs)
    this.#unchargedMs = 0
  }

  #charge(nowMs: number): void {
    if (this.#running > 0) this.#unchargedMs += nowMs - this.#chargedAtMs
    this.#chargedAtMs = nowMs
  }
}

/** One conversation. */
export class ConversationPlace {
  readonly parts: ConversationParts
  /** Id of the organization. */
  readonly org: string
  readonly beganAtMs: number
  /** Of its last turn or answer. */
  activeAtMs: number | undefined
  answeredAtMs: number | undefined

  constructor(parts: ConversationParts, org: string, nowMs: number) {
    this.parts = parts
    this.org = org
    this.beganAtMs = nowMs
  }

  /** Whether something was said lately. */
  isActive(nowMs: number): boolean {
    return this.activeAtMs !== undefined && nowMs - this.activeAtMs < activeMs
  }

  /** Whether something is expected to be said soon. */
  isNew(nowMs: number): boolean {
    return this.activeAtMs === undefined && nowMs - this.beganAtMs < newMs
  }
}

type CostOf = (parts: ConversationParts) => number

export class ConversationLoad {
  readonly #measured: MeasuredShares
  readonly #places = new Set<ConversationPlace>()
  readonly #texts = new Map<string, TextCost>()
  /** Time between two answers of a conversation, milliseconds. */
  #cycleMs = assumed.cycleMs
  /** Speech of an answer, milliseconds. */
  #speechMs = assumed.speechMs

  constructor(measured: MeasuredShares) {
    this.#measured = measured
  }

  get size(): number {
    return this.#places.size
  }

  /** Share of the machine that a conversation takes while it goes on. */
  costOf({ hears, speaks, writes }: ConversationParts, nowMs: number): number {
    const mind = Math.min(1, (this.#texts.get(writes)?.answerMs(nowMs) ?? 0) / this.#cycleMs)
    const voice = this.#measured.voice(speaks) * Math.min(1, this.#speechMs / this.#cycleMs)
    return this.#measured.ears(hears) + mind + voice
  }

  /** What the conversations take together. */
  share(nowMs: number): number {
    return this.#sum(nowMs, this.#costsAt(nowMs))
  }

  #sum(nowMs: number, costOf: CostOf): number {
    let sum = 0
    for (const { amount } of this.#partsAt(nowMs, costOf)) sum += amount
    return sum
  }

  /** As `costOf`, but asked once for conversations with the same parts: an answer takes time for each session of their models. */
  #costsAt(nowMs: number): CostOf {
    const known = new Map<string, number>()
    return (parts) => {
      const key = JSON.stringify([parts.hears, parts.writes, parts.speaks])
      const cost = known.get(key) ?? this.costOf(parts, nowMs)
      known.set(key, cost)
      return cost
    }
  }

  *#partsAt(nowMs: number, costOf: CostOf): Generator<Part> {
    for (const place of this.#places) {
      const isUsed = place.isActive(nowMs)
      const part = isUsed || place.isNew(nowMs) ? 1 : idlePart
      yield { party: place.org, amount: part * costOf(place.parts), isUsed }
    }
  }

  /**
   * A place, or none: another conversation would make all of them late. The only one beside idle ones is admitted whatever it
   * takes. If many speak again that were idle, none is ended: all are later, and no new one is admitted.
   */
  enter(parts: ConversationParts, org: string, nowMs: number): ConversationPlace | undefined {
    const goesOn = [...this.#places].some((place) => place.isActive(nowMs) || place.isNew(nowMs))
    const costOf = this.#costsAt(nowMs)
    const isOnly = !goesOn && this.#sum(nowMs, costOf) < shares.full
    const asked = { party: org, amount: costOf(parts) }
    if (!isOnly && !mayTake(this.#partsAt(nowMs, costOf), asked, shares)) return undefined
    const place = new ConversationPlace(parts, org, nowMs)
    this.#places.add(place)
    return place
  }

  leave(place: ConversationPlace): void {
    this.#places.delete(place)
  }

  /** An answer begins to be given. */
  answers(place: ConversationPlace, nowMs: number): void {
    const { answeredAtMs } = place
    place.activeAtMs = nowMs
    place.answeredAtMs = nowMs
    if (answeredAtMs === undefined) return
    const cycleMs = Math.min(activeMs, Math.max(shortestCycleMs, nowMs - answeredAtMs))
    this.#cycleMs = smoothed(this.#cycleMs, cycleMs)
  }

  /** An answer has ended, after this much speech was sent. */
  answered(place: ConversationPlace, nowMs: number, speechMs: number): void {
    place.activeAtMs = nowMs
    this.#speechMs = smoothed(this.#speechMs, speechMs)
  }

  /** The text engine begins to write. Returns what to call when it has ended. */
  writes({ parts }: ConversationPlace, nowMs: number): (nowMs: number) => void {
    const cost = this.#texts.get(parts.writes) ?? new TextCost()
    this.#texts.set(parts.writes, cost)
    cost.began(nowMs)
    let isRunning = true
    return (endMs) => {
      if (isRunning) cost.ended(endMs)
      isRunning = false
    }
  }

  /** Drops measurements of these models: their engines were replaced or removed. */
  forget(which: (id: string) => boolean): void {
    for (const id of this.#texts.keys()) if (which(id)) this.#texts.delete(id)
  }
}

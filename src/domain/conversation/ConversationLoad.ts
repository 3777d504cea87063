// The load of a node's conversations on the engines that they join, by measurement: admits a conversation, or refuses it. Pure but for
// its own counters; time comes in as numbers.
//
// Engines of one machine share its processors, so their shares add up. What an engine is measured to take includes what the others
// keep it waiting, so other work counts as less capacity. Conversations that are silent for a while cost nothing.

/**
 * Share of the machine that conversations may need. Measured: above it one answer in twenty comes more than 60 ms late, because the
 * engines wait for each other (docs/conversation.md#how-many-at-once).
 */
export const fullShare = 0.6

/** How long a conversation counts after its last turn or answer, milliseconds. Longer than most thoughts. A guess. */
export const activeMs = 30_000

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
export interface MeasuredShares {
  /** Share of the transcription engine that one speaker takes. */
  readonly ears: (id: string) => number
  /** Computing time for a second of speech, seconds. */
  readonly voice: (id: string) => number
}

/** Work of a text engine for answers: calls at the same time share it. */
class TextCost {
  answerMs = 0
  private running = 0
  private chargedAtMs = 0
  /** Busy time since the last answer ended. */
  private unchargedMs = 0

  began(nowMs: number): void {
    this.charge(nowMs)
    this.running++
  }

  ended(nowMs: number): void {
    this.charge(nowMs)
    this.running--
    this.answerMs = this.answerMs === 0 ? this.unchargedMs : smoothed(this.answerMs, this.unchargedMs)
    this.unchargedMs = 0
  }

  private charge(nowMs: number): void {
    if (this.running > 0) this.unchargedMs += nowMs - this.chargedAtMs
    this.chargedAtMs = nowMs
  }
}

/** One conversation. */
export class ConversationPlace {
  readonly parts: ConversationParts
  activeAtMs: number
  answeredAtMs: number | undefined

  constructor(parts: ConversationParts, nowMs: number) {
    this.parts = parts
    this.activeAtMs = nowMs
  }
}

export class ConversationLoad {
  private readonly measured: MeasuredShares
  private readonly places = new Set<ConversationPlace>()
  private readonly texts = new Map<string, TextCost>()
  /** Time between two answers of a conversation, milliseconds. */
  private cycleMs = assumed.cycleMs
  /** Speech of an answer, milliseconds. */
  private speechMs = assumed.speechMs

  constructor(measured: MeasuredShares) {
    this.measured = measured
  }

  get size(): number {
    return this.places.size
  }

  /** Share of the machine that a conversation takes while it goes on. */
  costOf({ hears, speaks, writes }: ConversationParts): number {
    const mind = Math.min(1, (this.texts.get(writes)?.answerMs ?? 0) / this.cycleMs)
    const voice = this.measured.voice(speaks) * Math.min(1, this.speechMs / this.cycleMs)
    return this.measured.ears(hears) + mind + voice
  }

  /** What the conversations that go on take together. */
  share(nowMs: number): number {
    let sum = 0
    for (const place of this.places) if (this.isActive(place, nowMs)) sum += this.costOf(place.parts)
    return sum
  }

  private isActive({ activeAtMs }: ConversationPlace, nowMs: number): boolean {
    return nowMs - activeAtMs < activeMs
  }

  /** A place, or none: another conversation would make all of them late. The only one is always admitted. */
  enter(parts: ConversationParts, nowMs: number): ConversationPlace | undefined {
    const others = this.share(nowMs)
    if (others > 0 && others + this.costOf(parts) > fullShare) return undefined
    const place = new ConversationPlace(parts, nowMs)
    this.places.add(place)
    return place
  }

  leave(place: ConversationPlace): void {
    this.places.delete(place)
  }

  /** An answer begins to be given. */
  answers(place: ConversationPlace, nowMs: number): void {
    const { answeredAtMs } = place
    place.activeAtMs = nowMs
    place.answeredAtMs = nowMs
    if (answeredAtMs === undefined) return
    const cycleMs = Math.min(activeMs, Math.max(shortestCycleMs, nowMs - answeredAtMs))
    this.cycleMs = smoothed(this.cycleMs, cycleMs)
  }

  /** An answer has ended, after this much speech was sent. */
  answered(place: ConversationPlace, nowMs: number, speechMs: number): void {
    place.activeAtMs = nowMs
    this.speechMs = smoothed(this.speechMs, speechMs)
  }

  /** The text engine begins to write. Returns what to call when it has ended. */
  writes({ parts }: ConversationPlace, nowMs: number): (nowMs: number) => void {
    const cost = this.texts.get(parts.writes) ?? new TextCost()
    this.texts.set(parts.writes, cost)
    cost.began(nowMs)
    let isRunning = true
    return (endMs) => {
      if (isRunning) cost.ended(endMs)
      isRunning = false
    }
  }

  /** Drops measurements of these models: their engines were replaced or removed. */
  forget(which: (id: string) => boolean): void {
    for (const id of this.texts.keys()) if (which(id)) this.texts.delete(id)
  }
}

// Saved states of all sequences within one memory bound, for models whose memory cannot be cut. Used between
// evaluations. The oldest are dropped first, because the newest are the most useful.
import type { NativeContext, SavedState } from "../native/Native.ts"
import type { Checkpoint, Slot } from "./Slots.ts"

/** Checkpoints of one sequence: after the system message, after the last message, and one spare. A guess. */
const perSlot = 3

/**
 * No checkpoint is taken closer than this to the sequence's previous one: evaluating so few tokens again costs less
 * than the copy. A guess.
 */
const worthwhileTokens = 8

export class Checkpoints {
  readonly #native: NativeContext
  readonly #limitBytes: number
  #heldBytes = 0
  /** While set, none is taken, and existing ones are dropped at the next call. */
  lean = false

  constructor(native: NativeContext, limitBytes: number) {
    this.#native = native
    this.#limitBytes = limitBytes
  }

  /** Saves the slot's present state if it is worth it and fits into the bound. */
  async take(slot: Slot<SavedState>, slots: ReadonlyArray<Slot<SavedState>>): Promise<void> {
    if (this.lean) return this.clear(slots)
    const length = slot.tokens.length
    const previous = slot.checkpoints.at(-1)
    if (length - (previous?.length ?? 0) < worthwhileTokens) return
    // All states of a model are about equal in size. Older ones are dropped before the copy, so the bound always holds.
    const expected =
      previous?.sizeBytes ??
      slots.find((other) => other.checkpoints.length > 0)?.checkpoints[0]?.sizeBytes ??
      0
    while (slot.checkpoints.length >= perSlot) this.#drop(slot, 0)
    while (this.#heldBytes + expected > this.#limitBytes && this.#dropOldest(slots)) {}
    if (this.#heldBytes + expected > this.#limitBytes) return
    const saved = await this.#native.save(slot.id)
    if (this.#heldBytes + saved.sizeBytes > this.#limitBytes) {
      saved.dispose()
      return
    }
    slot.checkpoints.push({ length, sizeBytes: saved.sizeBytes, saved })
    this.#heldBytes += saved.sizeBytes
  }

  /** Drops the states beyond `length`, the tokens that the slot now holds. */
  dropAfter(slot: Slot<SavedState>, length: number): void {
    while ((slot.checkpoints.at(-1)?.length ?? 0) > length) this.#drop(slot, slot.checkpoints.length - 1)
  }

  clear(slots: ReadonlyArray<Slot<SavedState>>): void {
    for (const slot of slots) this.dropAfter(slot, 0)
  }

  #dropOldest(slots: ReadonlyArray<Slot<SavedState>>): boolean {
    let oldest: Slot<SavedState> | undefined
    for (const slot of slots) {
      if (slot.checkpoints.length === 0) continue
      if (oldest === undefined || slot.lastUsed < oldest.lastUsed) oldest = slot
    }
    if (oldest !== undefined) this.#drop(oldest, 0)
    return oldest !== undefined
  }

  #drop(slot: Slot<SavedState>, at: number): void {
    const [dropped] = slot.checkpoints.splice(at, 1) as [Checkpoint<SavedState>]
    this.#heldBytes -= dropped.sizeBytes
    dropped.saved.dispose()
  }
}

// Saved states of all sequences within one memory bound, for models whose memory cannot be cut. Called by StepLoop
// between evaluations. The newest are worth most, so the oldest go first.
import type { NativeContext, SavedState } from "../native/Native.ts"
import type { Checkpoint, Slot } from "./Slots.ts"

/** Checkpoints of one sequence: after the system message, after the last message, and one to spare. A guess. */
const perSlot = 3

/**
 * Closer than this to the previous checkpoint of the sequence none is taken: evaluating so few tokens again costs
 * less than the copy. A guess.
 */
const worthwhileTokens = 8

export class Checkpoints {
  readonly #native: NativeContext
  readonly #limitBytes: number
  #heldBytes = 0
  /** While set none is taken, and those that there are go at the next occasion. */
  lean = false

  constructor(native: NativeContext, limitBytes: number) {
    this.#native = native
    this.#limitBytes = limitBytes
  }

  /** Saves the slot's present state, if it is worth it and fits. */
  async take(slot: Slot<SavedState>, slots: ReadonlyArray<Slot<SavedState>>): Promise<void> {
    if (this.lean) return this.clear(slots)
    const length = slot.tokens.length
    const previous = slot.checkpoints.at(-1)
    if (length - (previous?.length ?? 0) < worthwhileTokens) return
    // States of one model are about equal in size: make room before, so that the bound holds at every moment.
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

  /** The slot now holds `length` tokens; later states are worthless. */
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

// Which sequence serves a prompt, and bringing its memory to the part that it shares with the prompt. Called by StepLoop
// between native calls. The choice is made in Slots; here it is carried out.

import type { NativeContext, SavedState } from "../native/Native.ts"
import { Checkpoints } from "./Checkpoints.ts"
import { chooseSlot, makeSlots, type Slot } from "./Slots.ts"

export interface SequenceMemoryOptions {
  readonly native: NativeContext
  readonly slots: number
  /** The memory cannot be cut at any token. */
  readonly needsCheckpoints: boolean
  readonly checkpointBytes: number
}

export class SequenceMemory {
  readonly #options: SequenceMemoryOptions
  readonly #slots: ReadonlyArray<Slot<SavedState>>
  readonly #checkpoints: Checkpoints
  #uses = 0

  constructor(options: SequenceMemoryOptions) {
    this.#options = options
    this.#slots = makeSlots(options.slots)
    this.#checkpoints = new Checkpoints(options.native, options.checkpointBytes)
  }

  /** While on, no checkpoints are kept. */
  lean(on: boolean): void {
    this.#checkpoints.lean = on
  }

  /** Marks a sequence as busy, for this prompt. `undefined` when all are. The caller sets `busy` to false. */
  take(
    prompt: ReadonlyArray<number>,
  ): { readonly slot: Slot<SavedState>; readonly keep: number } | undefined {
    const chosen = chooseSlot(this.#slots, prompt, this.#options.needsCheckpoints)
    if (chosen === undefined) return undefined
    chosen.slot.busy = true
    chosen.slot.lastUsed = ++this.#uses
    return chosen
  }

  /** Shortens the sequence to `length` tokens, or to none where that cannot be done. The tokens that are left. */
  async keep(slot: Slot<SavedState>, length: number): Promise<number> {
    if (length === slot.tokens.length) return length
    const kept = length > 0 && (await this.#shorten(slot, length))
    if (!kept) this.#options.native.clear(slot.id)
    slot.tokens.length = kept ? length : 0
    this.#checkpoints.dropAfter(slot, slot.tokens.length)
    return slot.tokens.length
  }

  /** Keeps the sequence's present state for later prompts. */
  save(slot: Slot<SavedState>): Promise<void> {
    return this.#checkpoints.take(slot, this.#slots)
  }

  /** Takes back what an interrupted call has left behind the sequence's tokens: `most` tokens at most. */
  takeBack(slot: Slot<SavedState>, most: number): void {
    const { native, needsCheckpoints } = this.#options
    const { length } = slot.tokens
    // A recurrent state cannot go back: parts of it have moved on.
    if (length === 0 || needsCheckpoints || !native.cut(slot.id, length, length + most)) this.forget(slot)
  }

  /** Empties a sequence whose content is no longer certain. */
  forget(slot: Slot<SavedState>): void {
    this.#options.native.clear(slot.id)
    slot.tokens.length = 0
    this.#checkpoints.dropAfter(slot, 0)
  }

  /** Empties all sequences; none may be busy. */
  empty(): void {
    for (const slot of this.#slots) if (slot.tokens.length > 0) this.forget(slot)
  }

  /** Gives the checkpoints back. */
  close(): void {
    this.#checkpoints.clear(this.#slots)
  }

  async #shorten(slot: Slot<SavedState>, length: number): Promise<boolean> {
    const { native, needsCheckpoints } = this.#options
    if (!needsCheckpoints) return native.cut(slot.id, length, slot.tokens.length)
    const checkpoint = slot.checkpoints.findLast((candidate) => candidate.length === length)
    return checkpoint !== undefined && native.restore(checkpoint.saved, length)
  }
}

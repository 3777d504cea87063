// Saved states within one memory bound: checkpoints of sequences, for models whose memory cannot be cut, and the states of
// prompts that the catalog declares as shared, which any sequence can be given. Used between evaluations. The oldest are dropped
// first, because the newest are the most useful.
import type { NativeContext, SavedState } from "../native/Native.ts"
import type { Checkpoint, Slot } from "./Slots.ts"

/** Checkpoints of one sequence: after the system message, after the last message, and one spare. A guess. */
const perSlot = 3

/** Shared prompts with a saved state: a prompt has another one with tools, or on another day. A guess. */
const mostShared = 32

interface Shared {
  readonly tokens: ReadonlyArray<number>
  readonly saved: SavedState
}

const isBeginning = (tokens: ReadonlyArray<number>, prompt: ReadonlyArray<number>): boolean =>
  tokens.every((token, at) => token === prompt[at])

/**
 * No checkpoint is taken closer than this to the sequence's previous one: evaluating so few tokens again costs less
 * than the copy. A guess.
 */
const worthwhileTokens = 8

export class Checkpoints {
  readonly #native: NativeContext
  readonly #limitBytes: number
  #heldBytes = 0
  /** The one used last comes last. */
  readonly #shared: Array<Shared> = []
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
    while (this.#shared.length > 0) this.#dropShared()
  }

  /** Whether there is a state of the first `length` tokens of this prompt. */
  shares(prompt: ReadonlyArray<number>, length: number): boolean {
    return this.#sharedOf(prompt, length) !== undefined
  }

  /** Gives an empty sequence the state of the first `length` tokens of this prompt; false if that failed. */
  async give(sequenceId: number, prompt: ReadonlyArray<number>, length: number): Promise<boolean> {
    const shared = this.#sharedOf(prompt, length)
    if (shared === undefined) return false
    this.#shared.splice(this.#shared.indexOf(shared), 1)
    this.#shared.push(shared)
    return this.#native.direct.give(shared.saved, sequenceId)
  }

  /** Keeps the slot's present state for sequences of any owner, if there is none and it fits into the bound. */
  async share(slot: Slot<SavedState>, slots: ReadonlyArray<Slot<SavedState>>): Promise<void> {
    const { direct } = this.#native
    if (this.lean) return this.clear(slots)
    const tokens = [...slot.tokens]
    if (this.shares(tokens, tokens.length)) return
    const bytes = direct.wholeBytes(slot.id)
    if (bytes > this.#limitBytes) return
    while (this.#shared.length >= mostShared) this.#dropShared()
    while (this.#heldBytes + bytes > this.#limitBytes && this.#dropOldest(slots)) {}
    while (this.#heldBytes + bytes > this.#limitBytes) this.#dropShared()
    const saved = await direct.saveWhole(slot.id)
    this.#shared.push({ tokens, saved })
    this.#heldBytes += saved.sizeBytes
  }

  #sharedOf(prompt: ReadonlyArray<number>, length: number): Shared | undefined {
    return this.#shared.find(({ tokens }) => tokens.length === length && isBeginning(tokens, prompt))
  }

  #dropShared(): void {
    const [dropped] = this.#shared.splice(0, 1) as [Shared]
    this.#heldBytes -= dropped.saved.sizeBytes
    dropped.saved.dispose()
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

// Finds a sequence for a prompt (the choice is made in Slots) and cuts or restores its memory to the part that it shares
// with the prompt. Used between native calls.

import type { NativeContext, SavedState } from "../native/Native.ts"
import { Checkpoints } from "./Checkpoints.ts"
import {
  type Chosen,
  chooseSlot,
  makeSlots,
  type Owner,
  positionAt,
  type Slot,
  type Wanted,
} from "./Slots.ts"

/** Positions. llama.cpp rounds the length of its attention up to a multiple of it. */
const attentionStep = 256

export interface SequenceMemoryOptions {
  readonly native: NativeContext
  readonly slots: number
  /** True if the memory cannot be cut at an arbitrary token. */
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

  /**
   * What to look for. `shared`: tokens of the prompt's beginning that are a prompt which all owners share, else 0. At least
   * two tokens are always evaluated (Slots).
   */
  wanted(prompt: ReadonlyArray<number>, owner: Owner, shared: number): Wanted {
    const ready = shared > 0 && shared + 2 <= prompt.length && this.#checkpoints.shares(prompt, shared)
    return { prompt, owner, ready: ready ? shared : 0 }
  }

  /** Chooses a free sequence for a prompt and sets `busy`. Undefined if all are busy. The caller clears `busy`. */
  take(wanted: Wanted): Chosen<SavedState> | undefined {
    const chosen = chooseSlot(this.#slots, wanted, this.#options.needsCheckpoints)
    if (chosen === undefined) return undefined
    chosen.slot.busy = true
    chosen.slot.lastUsed = ++this.#uses
    return chosen
  }

  /** A free sequence that becomes a copy of `from`. Sets `busy`. Undefined if all are busy. */
  copy(from: Slot<SavedState>): Slot<SavedState> | undefined {
    const slot = this.take({ prompt: [], owner: from.owner, ready: 0 })?.slot
    if (slot === undefined) return undefined
    this.forget(slot)
    slot.owner = from.owner
    this.#options.native.direct.copy(from.id, slot.id)
    slot.tokens = [...from.tokens]
    slot.jumps = [...from.jumps]
    return slot
  }

  /** Gives a chosen sequence to the prompt's owner. Returns how many of the prompt's tokens it holds. */
  async begin({ given, keep, slot }: Chosen<SavedState>, { owner, prompt }: Wanted): Promise<number> {
    slot.owner = owner
    if (!given) return this.#keep(slot, keep)
    this.forget(slot)
    if (!(await this.#checkpoints.give(slot.id, prompt, keep))) return 0
    slot.tokens = prompt.slice(0, keep)
    return keep
  }

  /** Keeps a copy of the sequence's state, all of whose tokens are a shared prompt, for prompts of any owner. */
  share(slot: Slot<SavedState>): Promise<void> {
    return this.#checkpoints.share(slot, this.#slots)
  }

  /** Shortens the sequence to `length` tokens, or to none if that is impossible. Returns the tokens that are left. */
  async #keep(slot: Slot<SavedState>, length: number): Promise<number> {
    if (length === slot.tokens.length) return length
    const kept = length > 0 && (await this.#shorten(slot, length))
    if (!kept) this.#options.native.clear(slot.id)
    slot.tokens.length = kept ? length : 0
    slot.jumps = slot.jumps.filter(({ to }) => to <= slot.tokens.length)
    this.#checkpoints.dropAfter(slot, slot.tokens.length)
    return slot.tokens.length
  }

  /** Keeps the sequence's present state for later prompts. */
  save(slot: Slot<SavedState>): Promise<void> {
    return this.#checkpoints.take(slot, this.#slots)
  }

  /** Removes the tokens that an interrupted call may have appended, at most `most`. */
  takeBack(slot: Slot<SavedState>, most: number): void {
    const { native, needsCheckpoints } = this.#options
    const { length } = slot.tokens
    const inJump = slot.jumps.some(({ from, to }) => length >= from && length < to)
    // A recurrent state cannot be rolled back, and neither can the rows of a picture that have one time.
    if (length === 0 || needsCheckpoints || inJump) return this.forget(slot)
    const position = positionAt(slot, length)
    if (!native.cut(slot.id, position, position + most)) this.forget(slot)
  }

  /** Empties a sequence whose content is uncertain. */
  forget(slot: Slot<SavedState>): void {
    this.#options.native.clear(slot.id)
    slot.tokens.length = 0
    slot.jumps = []
    this.#checkpoints.dropAfter(slot, 0)
  }

  /**
   * So many idle sequences beside these neighbours, ascending, each of which can be given a token and lose it again; none if there are not as many.
   * They make the call compute no more attention, which it does for its longest sequence, in steps of `attentionStep`.
   */
  spare(ids: ReadonlyArray<number>, count: number): ReadonlyArray<Slot<SavedState>> {
    if (count <= 0) return []
    const longest = Math.max(...ids.map((id) => this.#slots[id]!.tokens.length))
    const attended = Math.ceil((longest + 1) / attentionStep) * attentionStep
    const canSpare = ({ busy, jumps, tokens }: Slot<SavedState>): boolean =>
      !busy &&
      tokens.length < attended &&
      (tokens.length === 0 || (jumps.length === 0 && !this.#options.needsCheckpoints))
    const row = (from: number, step: 1 | -1, most: number): Array<Slot<SavedState>> => {
      const found: Array<Slot<SavedState>> = []
      for (let id = from; found.length < most; id += step) {
        const slot = this.#slots[id]
        if (slot === undefined || !canSpare(slot)) break
        found.push(slot)
      }
      return found
    }
    const above = row(ids.at(-1)! + 1, 1, count)
    const below = row(ids[0]! - 1, -1, count - above.length)
    return above.length + below.length < count ? [] : [...below.reverse(), ...above]
  }

  /** Ids of the most neighbouring sequences that hold nothing, ascending. */
  unused(): ReadonlyArray<number> {
    let most: ReadonlyArray<number> = []
    let run: ReadonlyArray<number> = []
    for (const { busy, id, tokens } of this.#slots) {
      run = busy || tokens.length > 0 ? [] : [...run, id]
      if (run.length > most.length) most = run
    }
    return most
  }

  /** Empties all sequences; none may be busy. */
  empty(): void {
    for (const slot of this.#slots) if (slot.tokens.length > 0) this.forget(slot)
  }

  /** Frees the saved states. */
  close(): void {
    this.#checkpoints.clear(this.#slots)
  }

  async #shorten(slot: Slot<SavedState>, length: number): Promise<boolean> {
    const { native, needsCheckpoints } = this.#options
    const position = positionAt(slot, length)
    // No position of the sequence is higher than its length.
    if (!needsCheckpoints) return native.cut(slot.id, position, Math.max(position, slot.tokens.length))
    const checkpoint = slot.checkpoints.findLast((candidate) => candidate.length === length)
    return checkpoint !== undefined && native.restore(checkpoint.saved, position)
  }
}

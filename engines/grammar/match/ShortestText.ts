// The bytes of the shortest end of a reply, one after the other.
import { type CompiledGrammar, firstCall } from "../CompiledGrammar.ts"
import type { Frame } from "./Frames.ts"

export class ShortestText {
  readonly #grammar: CompiledGrammar
  /** Calls that this text has begun, above `#frame`. */
  readonly #calls: Array<{ readonly call: number; left: number }> = []
  #frame: Frame
  /** Calls of `#frame` that have to be made again. */
  #left: number
  /** -1: the automaton has ended. */
  #state: number
  readonly #bytes: Array<number> = []

  /** From a state in a frame; -1 for where the frame's automaton has ended. */
  constructor(grammar: CompiledGrammar, frame: Frame, state: number) {
    this.#grammar = grammar
    this.#frame = frame
    this.#left = frame.least
    this.#state = state
  }

  /** The byte with this number; -1 behind the end. */
  at(index: number): number {
    while (this.#bytes.length <= index) {
      const byte = this.#next()
      if (byte < 0) return -1
      this.#bytes.push(byte)
    }
    return this.#bytes[index]!
  }

  #next(): number {
    const { callLeast, callStart, callTo, shortestStep } = this.#grammar
    for (;;) {
      const step = this.#state < 0 ? -1 : shortestStep[this.#state]!
      if (step >= firstCall) {
        const call = step - firstCall
        if (callLeast[call] === 0) this.#state = callTo[call]!
        else {
          this.#calls.push({ call, left: callLeast[call]! - 1 })
          this.#state = callStart[call]!
        }
      } else if (step >= 0) {
        this.#state = this.#target(step)
        return step
      } else if (!this.#return()) return -1
    }
  }

  /** Goes on behind an automaton that has ended. False at the end of the reply. */
  #return(): boolean {
    const { callStart, callTo } = this.#grammar
    const top = this.#calls.at(-1)
    if (top !== undefined) {
      if (top.left-- > 0) this.#state = callStart[top.call]!
      else {
        this.#calls.pop()
        this.#state = callTo[top.call]!
      }
      return true
    }
    const { call, parent, to } = this.#frame
    if (parent === undefined) return false
    if (this.#left-- > 0) this.#state = callStart[call]!
    else {
      this.#state = to
      this.#frame = parent
      this.#left = parent.least
    }
    return true
  }

  #target(byte: number): number {
    const { edgeHigh, edgeTo, edgesFrom } = this.#grammar
    let edge = edgesFrom[this.#state]!
    while (byte > edgeHigh[edge]!) edge++
    return edgeTo[edge]!
  }
}

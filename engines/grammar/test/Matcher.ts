// Reads text along a grammar without a vocabulary.
import type { CompiledGrammar } from "../CompiledGrammar.ts"
import { forcedRun } from "../match/Forced.ts"
import type { Position } from "../match/Frames.ts"
import { Machine } from "../match/Machine.ts"
import { ShortestText } from "../match/ShortestText.ts"

export class Matcher {
  readonly #machine: Machine
  #position: Position

  constructor(grammar: CompiledGrammar, machine = new Machine(grammar)) {
    this.#machine = machine
    this.#position = machine.start()
  }

  /** True if these bytes may come next. */
  accepts(bytes: Uint8Array): boolean {
    return this.#after(bytes) !== undefined
  }

  /** Reads the bytes; false, and nothing is read, if they may not come next. */
  accept(bytes: Uint8Array): boolean {
    const end = this.#after(bytes)
    if (end === undefined) return false
    this.#position = this.#machine.renewed(end)
    return true
  }

  /** True if the text may end here. */
  get complete(): boolean {
    return this.#position.complete
  }

  /** True if nothing may follow. */
  get finished(): boolean {
    return this.#position.complete && this.#position.choices === 0
  }

  /** Bytes that must come next; at most 1,024. */
  forced(): Uint8Array {
    return Uint8Array.from(forcedRun(this.#machine, this.#position).bytes)
  }

  /** Number of bytes of the shortest end. */
  get shortestLength(): number {
    return this.#position.shortest
  }

  /** The shortest end. */
  shortest(): Uint8Array {
    const { complete, places, shortest } = this.#position
    const place = places.find((each) => each.shortest === shortest)
    if (complete || place === undefined) return new Uint8Array(0)
    const text = new ShortestText(this.#machine.grammar, place.frame, place.state)
    return Uint8Array.from({ length: shortest }, (_, index) => text.at(index))
  }

  /** Ways in which the text so far can be read. */
  get ways(): number {
    return this.#position.places.length
  }

  #after(bytes: Uint8Array): Position | undefined {
    let at: Position | undefined = this.#position
    for (let index = 0; index < bytes.length && at !== undefined; index++)
      at = this.#machine.read(at, bytes[index]!)
    return at
  }
}

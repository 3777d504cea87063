// Reads bytes along a compiled grammar. Positions are made when they are first reached and kept, so reading a byte again
// from the same position is a look-up. One machine for each grammar and vocabulary; its replies share it.
import { type CompiledGrammar, stateFlag } from "../CompiledGrammar.ts"
import { Frame, Place, Position, positionKind } from "./Frames.ts"

/**
 * Ways in which a text can be read at the same time. Beyond it those with the longest ends are given up: every text that
 * is then accepted is still right, but not every right text is accepted. Reached only by ambiguous counts and by choices
 * between more rules than this. A guess.
 */
export const mostPlaces = 1_000

interface MachineLimits {
  /** Objects that a machine keeps before it forgets all that no reply uses. A guess: at most about 10 MB. */
  readonly objects: number
  /** Positions with a full table of what follows, 2 KB each. */
  readonly tables: number
}

/** Of a place that is reached: its calls, and its part in the position's name. Measured. */
const placeWork = 10

const usual: MachineLimits = { objects: 30_000, tables: 2_000 }

/** What the lowest frames stand for, as their `to`. */
const lowest = { end: -1, unknown: -2 } as const

const lowestFrame = (to: number): Frame => new Frame(undefined, { call: -1, to, least: 0, most: 0 }, 0)

export class Machine {
  readonly grammar: CompiledGrammar
  readonly #limits: MachineLimits
  /** Lowest frame: the end of the reply. */
  #bottom = lowestFrame(lowest.end)
  /** Lowest frame of stacks that were cut off: what follows there is not known. */
  #unknown = lowestFrame(lowest.unknown)
  #positions = new Map<string, Position>()
  #start: Position | undefined
  #ids = 0
  #objects = 0
  #tables = 0
  /** Number of the current set of objects: grows when all are forgotten. */
  epoch = 0
  /**
   * What was done for all replies so far, in units of about 30 ns (measured on an EPYC at 2.4 GHz): a node of the vocabulary's tree
   * counts 1, a place that is reached anew 10. It does not depend on the machine's load.
   */
  work = 0
  /** Of the step that is being made. */
  #step = 0
  #kind = 0
  readonly #reached = new Set<Place>()

  constructor(grammar: CompiledGrammar, limits: MachineLimits = usual) {
    this.grammar = grammar
    this.#limits = limits
  }

  start(): Position {
    this.#start ??= this.#position([this.#place(this.#bottom, this.grammar.start)])
    return this.#start
  }

  /** The position after the byte; undefined if it may not follow. */
  read(from: Position, byte: number): Position | undefined {
    if (from.only >= 0) {
      if (byte !== from.only) return undefined
      from.afterOnly ??= this.#after(from, byte)
      return from.afterOnly
    }
    const known = from.next?.[byte]
    if (known !== undefined) return known
    if (((from.bytes[byte >> 5]! >>> (byte & 31)) & 1) === 0) return undefined
    if (from.next === undefined) {
      from.next = new Array(256)
      this.#tables++
    }
    const found = this.#after(from, byte)
    from.next[byte] = found
    return found
  }

  /** The same position; a copy among new objects if the old ones have become too many. Forgets the old ones. */
  renewed(position: Position): Position {
    if (this.#objects > this.#limits.objects || this.#tables > this.#limits.tables) this.forget()
    if (position.epoch === this.epoch) return position
    const copies = new Map<Frame, Frame>()
    const places = position.places.map(({ frame, state }) => this.#place(this.#copy(frame, copies), state))
    if (this.#objects > this.#limits.objects / 2) {
      // A deep stack alone fills half of the limit: counting begins at what cannot be forgotten.
      this.#objects = 0
    }
    return this.#kept(places, position.complete ? positionKind.complete : 0)
  }

  /** Forgets everything that no reply uses. */
  forget(): void {
    this.epoch++
    this.#bottom = lowestFrame(lowest.end)
    this.#unknown = lowestFrame(lowest.unknown)
    this.#positions = new Map()
    this.#start = undefined
    this.#objects = 0
    this.#tables = 0
  }

  /**
   * The position of one place alone, with at most `frames` frames of its stack. If what follows leads out of these, a
   * position is `open`. `below` is the frame under them. Counts of repeats that `farthest` bytes cannot reach are left out: a long
   * text has one position where its limit is far.
   */
  cut(
    place: Place,
    frames: number,
    farthest = Number.POSITIVE_INFINITY,
  ): { readonly position: Position; readonly below: Frame | undefined } {
    const stack: Array<Frame> = []
    let below: Frame | undefined = place.frame
    while (below.parent !== undefined && stack.length < frames) {
      stack.push(below)
      below = below.parent
    }
    const { callLeast, callMost } = this.grammar
    const mostOf = ({ call, least, most }: Frame): number =>
      least === 0 && callMost[call]! - farthest >= callLeast[call]! ? Math.min(most, farthest) : most
    const isWhole = below.parent === undefined
    if (isWhole && stack.every((frame) => mostOf(frame) === frame.most))
      return { position: this.#kept([place], 0), below: undefined }
    let frame = isWhole ? below : this.#unknown
    for (const upper of stack.reverse()) frame = this.#push(frame, upper.call, mostOf(upper))
    const position = this.#kept([this.#place(frame, place.state)], 0)
    return { position, below: isWhole ? undefined : below }
  }

  #copy(frame: Frame, copies: Map<Frame, Frame>): Frame {
    const path: Array<Frame> = []
    let at = frame
    for (; at.parent !== undefined && !copies.has(at); at = at.parent) path.push(at)
    let copy = copies.get(at) ?? this.#bottom
    for (const upper of path.reverse()) {
      copy = this.#push(copy, upper.call, upper.most)
      copies.set(upper, copy)
    }
    return copy
  }

  /** The frame of one call with `most` further ones. */
  #push(parent: Frame, call: number, most: number): Frame {
    const { callLeast, callMost, callStart, callTo, shortest } = this.grammar
    const key = call * 2 ** 25 + most
    const known = parent.children.get(key)
    if (known !== undefined) return known
    // Calls so far, this one included: callMost - most.
    const least = Math.max(callLeast[call]! - (callMost[call]! - most), 0)
    const to = callTo[call]!
    const again = least === 0 ? 0 : least * shortest[callStart[call]!]!
    const frame = new Frame(parent, { call, to, least, most }, again + shortest[to]! + parent.after)
    parent.children.set(key, frame)
    this.#objects++
    return frame
  }

  #place(frame: Frame, state: number): Place {
    const known = frame.places.get(state)
    if (known !== undefined) return known
    const place = new Place(frame, state, this.#ids++, this.grammar.shortest[state]! + frame.after)
    frame.places.set(state, place)
    this.#objects++
    return place
  }

  #after(from: Position, byte: number): Position {
    const { edgeHigh, edgeLow, edgeTo, edgesFrom } = this.grammar
    const seeds: Array<Place> = []
    for (const { frame, state } of from.places) {
      const end = edgesFrom[state + 1]!
      let edge = edgesFrom[state]!
      while (edge < end && byte > edgeHigh[edge]!) edge++
      if (edge < end && byte >= edgeLow[edge]!) seeds.push(this.#place(frame, edgeTo[edge]!))
      this.work += 1 + edge - edgesFrom[state]!
    }
    return this.#position(seeds)
  }

  /** Follows calls and ends of automata until every way needs a byte. */
  #position(seeds: ReadonlyArray<Place>): Position {
    const { callMost, callLeast, callStart, callTo, callsFrom, edgesFrom, flags } = this.grammar
    const reached = this.#reached
    this.#step++
    this.#kind = 0
    for (const seed of seeds) reached.add(seed)
    const places: Array<Place> = []
    for (const place of reached) {
      const { frame, state } = place
      const lastCall = callsFrom[state + 1]!
      if (edgesFrom[state + 1]! > edgesFrom[state]!) places.push(place)
      if ((flags[state]! & stateFlag.accepts) !== 0) this.#return(frame)
      for (let call = callsFrom[state]!; call < lastCall; call++) {
        if (callLeast[call] === 0) reached.add(this.#place(frame, callTo[call]!))
        if (callMost[call]! > 0) this.#call(frame, call, callMost[call]! - 1, callStart[call]!)
      }
    }
    this.work += reached.size * placeWork
    reached.clear()
    return this.#kept(places, this.#kind)
  }

  #call(parent: Frame, call: number, most: number, start: number): void {
    const { callTo, callsFrom, edgesFrom, flags } = this.grammar
    const to = callTo[call]!
    // Nothing follows the last call but the end of the caller: its frame is not needed.
    if (
      most === 0 &&
      flags[to] === stateFlag.accepts &&
      edgesFrom[to + 1] === edgesFrom[to] &&
      callsFrom[to + 1] === callsFrom[to]
    ) {
      this.#reached.add(this.#place(parent, start))
      return
    }
    const frame = this.#push(parent, call, most)
    frame.pushed = this.#step
    this.#reached.add(this.#place(frame, start))
  }

  /** An automaton has ended. */
  #return(frame: Frame): void {
    const { parent, call } = frame
    if (parent === undefined) {
      this.#kind |= frame.to === lowest.unknown ? positionKind.open : positionKind.complete
      return
    }
    const { callNullable, callStart } = this.grammar
    // A call that has read nothing: whatever follows it also follows without it. Counting such calls would take long.
    if (callNullable[call] === 1 && frame.pushed === this.#step && frame.most > 0) {
      this.#reached.add(this.#place(parent, frame.to))
      return
    }
    if (frame.least === 0) this.#reached.add(this.#place(parent, frame.to))
    if (frame.most > 0) this.#call(parent, call, frame.most - 1, callStart[call]!)
  }

  #kept(places: Array<Place>, kind: number): Position {
    const [first] = places
    if (places.length === 1 && first !== undefined) {
      first.alone[kind] ??= this.#make(places, kind)
      return first.alone[kind]
    }
    if (places.length > mostPlaces) {
      places.sort((a, b) => a.shortest - b.shortest || a.id - b.id)
      places.length = mostPlaces
    }
    places.sort((a, b) => a.id - b.id)
    const key = `${kind}:${places.map(({ id }) => id).join()}`
    let position = this.#positions.get(key)
    if (position === undefined) {
      position = this.#make(places, kind)
      this.#positions.set(key, position)
    }
    return position
  }

  #make(places: ReadonlyArray<Place>, kind: number): Position {
    const { edgeHigh, edgeLow, edgesFrom, flags } = this.grammar
    const bytes = new Uint32Array(8)
    let free = false
    for (const { state } of places) {
      if ((flags[state]! & stateFlag.free) !== 0) free = true
      for (let edge = edgesFrom[state]!; edge < edgesFrom[state + 1]!; edge++)
        for (let byte = edgeLow[edge]!; byte <= edgeHigh[edge]!; byte++)
          bytes[byte >> 5] = bytes[byte >> 5]! | (1 << (byte & 31))
    }
    this.#objects++
    return new Position(places, kind, free, bytes, this.epoch)
  }
}

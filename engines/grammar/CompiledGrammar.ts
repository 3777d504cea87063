// A grammar as tables: automata over bytes that call each other. Plain typed arrays, so that a thread can send it.
//
// Each automaton is deterministic in its bytes; calls are a second kind of edge. A state may have both. Every state
// listed here can reach the end of its automaton.

export interface CompiledGrammar {
  /** First state of a reply. */
  readonly start: number
  /** `edgesFrom[s]` to `edgesFrom[s + 1]`: the byte edges of state s, in rising order, without overlaps. */
  readonly edgesFrom: Uint32Array
  readonly edgeLow: Uint8Array
  readonly edgeHigh: Uint8Array
  readonly edgeTo: Uint32Array
  /** `callsFrom[s]` to `callsFrom[s + 1]`: the calls of state s. */
  readonly callsFrom: Uint32Array
  /** First state of the called automaton. */
  readonly callStart: Uint32Array
  /** Where to go on after the last of the calls. */
  readonly callTo: Uint32Array
  /** How often the automaton is passed in a row; both 1 for a plain call. `most` may be 0: nothing is called then. */
  readonly callLeast: Uint32Array
  readonly callMost: Uint32Array
  /** 1 if the called automaton accepts the empty text; then `least` is 0. */
  readonly callNullable: Uint8Array
  /** Bits of `stateFlag` for each state. */
  readonly flags: Uint8Array
  /**
   * Bytes of the shortest way from each state to the end of its automaton, by bytes that are tokens by themselves.
   * Infinity if there is none by such bytes.
   */
  readonly shortest: Float64Array
  /** First step of that way: a byte, or `firstCall` plus the number of a call; -1 at the end and where there is no way. */
  readonly shortestStep: Int32Array
}

export const stateFlag = {
  /** The automaton may end here. */
  accepts: 1,
  /** Any token may follow, also one without text. */
  free: 2,
} as const

/** Steps from here on are calls. */
export const firstCall = 256

export const grammarBytes = (grammar: CompiledGrammar): number =>
  Object.values(grammar).reduce(
    (sum: number, value) => sum + (ArrayBuffer.isView(value) ? value.byteLength : 0),
    0,
  )

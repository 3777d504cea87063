// Writes deterministic automata into the tables of a compiled grammar. States that no reply reaches are left out.
import type { Checkpoint } from "../Checkpoint.ts"
import { type CompiledGrammar, firstCall, stateFlag } from "../CompiledGrammar.ts"
import type { Deterministic } from "./Determinize.ts"
import type { Shortest } from "./Shortest.ts"

export const pack = (
  { starts, states }: Deterministic,
  every: Shortest,
  shortest: Shortest,
  checkpoint: Checkpoint,
): CompiledGrammar => {
  const numbers = new Int32Array(states.length).fill(-1)
  const order: Array<number> = []
  const reach = (state: number) => {
    if (numbers[state] !== -1) return
    numbers[state] = order.push(state) - 1
  }
  reach(starts[0]!)
  for (const state of order) {
    for (const { to } of states[state]!.edges) reach(to)
    for (const { most, network, to } of states[state]!.calls) {
      if (most > 0) reach(starts[network]!)
      reach(to)
    }
  }

  const edges = order.reduce((sum, state) => sum + states[state]!.edges.length, 0)
  const calls = order.reduce((sum, state) => sum + states[state]!.calls.length, 0)
  const grammar = {
    start: 0,
    edgesFrom: new Uint32Array(order.length + 1),
    edgeLow: new Uint8Array(edges),
    edgeHigh: new Uint8Array(edges),
    edgeTo: new Uint32Array(edges),
    callsFrom: new Uint32Array(order.length + 1),
    callStart: new Uint32Array(calls),
    callTo: new Uint32Array(calls),
    callLeast: new Uint32Array(calls),
    callMost: new Uint32Array(calls),
    callNullable: new Uint8Array(calls),
    flags: new Uint8Array(order.length),
    shortest: new Float64Array(order.length),
    shortestStep: new Int32Array(order.length),
  }
  let edge = 0
  let call = 0
  order.forEach((state, number) => {
    const of = states[state]!
    checkpoint(1 + of.edges.length + of.calls.length)
    grammar.flags[number] = (of.accepts ? stateFlag.accepts : 0) | (of.free ? stateFlag.free : 0)
    grammar.shortest[number] = shortest.bytes[state]!
    const step = shortest.step[state]!
    grammar.shortestStep[number] = step < firstCall ? step : step + call
    for (const { high, low, to } of of.edges) {
      grammar.edgeLow[edge] = low
      grammar.edgeHigh[edge] = high
      grammar.edgeTo[edge++] = numbers[to]!
    }
    for (const { least, most, network, to } of of.calls) {
      const called = starts[network]!
      const isNullable = every.bytes[called] === 0
      grammar.callStart[call] = most > 0 ? numbers[called]! : 0
      grammar.callTo[call] = numbers[to]!
      grammar.callLeast[call] = isNullable ? 0 : least
      grammar.callMost[call] = most
      grammar.callNullable[call++] = isNullable ? 1 : 0
    }
    grammar.edgesFrom[number + 1] = edge
    grammar.callsFrom[number + 1] = call
  })
  return grammar
}

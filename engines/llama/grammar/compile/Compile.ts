// Compiles a reply's shape to tables. Pure; at most as long as its input is large, so callers with input of others
// run it on a thread (GrammarCompiler).
import type { CompiledGrammar } from "../CompiledGrammar.ts"
import type { ReplyShape } from "../ReplyShape.ts"
import { type Deterministic, determinize } from "./Determinize.ts"
import { freeText } from "./FreeText.ts"
import { leftRecursive } from "./LeftRecursion.ts"
import { GrammarProblem, Networks } from "./Networks.ts"
import { pack } from "./Pack.ts"
import { type Shortest, shortestEnds } from "./Shortest.ts"

export type Compiled = { readonly grammar: CompiledGrammar } | { readonly problem: string }

/** Which bytes are tokens by themselves: 1 for each byte that is. Absent: all. */
export type SingleBytes = Uint8Array

/** Takes away what cannot be part of a finished reply, so that every state that is left can reach the end. */
const prune = ({ starts, states }: Deterministic, { bytes }: Shortest): void => {
  const ends = (state: number) => Number.isFinite(bytes[state]!)
  for (const state of states) {
    state.edges = state.edges.filter(({ to }) => ends(to))
    state.calls = state.calls.flatMap((call) => {
      if (!ends(call.to)) return []
      if (ends(starts[call.network]!)) return [call]
      return call.least > 0 ? [] : [{ ...call, most: 0 }]
    })
  }
}

const attempt = ({ rules, stages }: ReplyShape, single: SingleBytes | undefined): Compiled => {
  const networks = new Networks(rules, (building, final) =>
    stages.reduceRight(
      (next, stage) => freeText(building, stage, next, final),
      building.build(rules.root, final),
    ),
  )
  const deterministic = determinize(networks)
  const every = shortestEnds(deterministic, () => true)
  const root = deterministic.starts[0]!
  if (!Number.isFinite(every.bytes[root]!)) return { problem: "matches no finite text" }
  const allEnd = every.bytes.every(Number.isFinite)
  if (!allEnd) prune(deterministic, every)
  const circle = leftRecursive(deterministic, every)
  if (circle !== undefined)
    return { problem: `the rule "${networks.networks[circle]!.name}" begins with itself` }
  const usable = (byte: number) => single === undefined || single[byte] === 1
  const shortest =
    allEnd && (single === undefined || single.every((byte) => byte === 1))
      ? every
      : shortestEnds(deterministic, usable)
  if (!Number.isFinite(shortest.bytes[root]!)) return { problem: "the model's vocabulary cannot spell it" }
  return { grammar: pack(deterministic, every, shortest) }
}

export const compile = (shape: ReplyShape, single?: SingleBytes): Compiled => {
  try {
    return attempt(shape, single)
  } catch (cause) {
    if (cause instanceof GrammarProblem) return { problem: cause.message }
    if (cause instanceof RangeError) return { problem: "is nested too deeply or is too large" }
    throw cause
  }
}

// Compiles a reply's shape to tables. Pure; at most as long as its input is large, so callers with input of others
// run it on a thread (GrammarCompiler).
import { type Checkpoint, noCheckpoint } from "../Checkpoint.ts"
import type { CompiledGrammar } from "../CompiledGrammar.ts"
import type { ReplyShape } from "../Expression.ts"
import { type Deterministic, determinize } from "./Determinize.ts"
import { freeText } from "./FreeText.ts"
import { leftRecursive } from "./LeftRecursion.ts"
import { GrammarProblem, Networks } from "./Networks.ts"
import { pack } from "./Pack.ts"
import { type Shortest, shortestEnds } from "./Shortest.ts"

/** `rule` is the one that the problem was found in. */
type Compiled = { readonly grammar: CompiledGrammar } | { readonly problem: string; readonly rule: string }

/** Called with the name of the rule that is worked on next. */
type Watch = (rule: string) => void

/** Which bytes are tokens by themselves: 1 for each byte that is. Absent: all. */
type SingleBytes = Uint8Array

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

/** The rule whose automaton is the largest: what follows works on all of them together. */
const largestRule = ({ networks }: Networks, { starts, states }: Deterministic): string => {
  const sizes = starts.map((start, at) => (starts[at + 1] ?? states.length) - start)
  const largest = sizes.reduce((found, size, at) => (size > sizes[found]! ? at : found), 0)
  return networks[largest]!.name
}

/** The last rule that has no end. Rules come before those that they call, so it is not only one that calls another such rule. */
const endlessRule = ({ networks }: Networks, { starts }: Deterministic, { bytes }: Shortest): string =>
  networks[starts.findLastIndex((start) => !Number.isFinite(bytes[start]!))]!.name

const attempt = (
  { rules, stages }: ReplyShape,
  single: SingleBytes | undefined,
  watch: Watch,
  checkpoint: Checkpoint,
): CompiledGrammar => {
  const networks = new Networks(
    rules,
    (building, final) =>
      stages.reduceRight(
        (next, stage) => freeText(building, stage, next, final),
        building.build(rules.root, final),
      ),
    watch,
    checkpoint,
  )
  const deterministic = determinize(networks, watch, checkpoint)
  watch(largestRule(networks, deterministic))
  const every = shortestEnds(deterministic, () => true, checkpoint)
  const root = deterministic.starts[0]!
  if (!Number.isFinite(every.bytes[root]!)) {
    watch(endlessRule(networks, deterministic, every))
    throw new GrammarProblem("matches no finite text")
  }
  const allEnd = every.bytes.every(Number.isFinite)
  if (!allEnd) prune(deterministic, every)
  const circle = leftRecursive(deterministic, every)
  if (circle !== undefined) {
    const { name } = networks.networks[circle]!
    watch(name)
    throw new GrammarProblem(`the rule "${name}" begins with itself`)
  }
  const usable = (byte: number) => single === undefined || single[byte] === 1
  const shortest =
    allEnd && (single === undefined || single.every((byte) => byte === 1))
      ? every
      : shortestEnds(deterministic, usable, checkpoint)
  if (!Number.isFinite(shortest.bytes[root]!)) {
    watch(endlessRule(networks, deterministic, shortest))
    throw new GrammarProblem("the model's vocabulary cannot spell it")
  }
  return pack(deterministic, every, shortest, checkpoint)
}

export const compile = (
  shape: ReplyShape,
  single?: SingleBytes,
  watch: Watch = () => {},
  checkpoint: Checkpoint = noCheckpoint,
): Compiled => {
  let rule = ""
  const watched: Watch = (name) => {
    rule = name
    watch(name)
  }
  try {
    return { grammar: attempt(shape, single, watched, checkpoint) }
  } catch (cause) {
    if (cause instanceof GrammarProblem) return { problem: cause.message, rule }
    if (cause instanceof RangeError) return { problem: "is nested too deeply or is too large", rule }
    throw cause
  }
}

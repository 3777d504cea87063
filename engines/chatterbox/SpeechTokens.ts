// Text tokens → speech tokens, one native step at a time, always the most probable token: the same text and voice give
// the same tokens. The caller schedules the steps.
import * as Effect from "effect/Effect"
import type { EngineError } from "../protocol/Engine.ts"
import type { ChatterboxGraphs, ClonedVoice } from "./ChatterboxGraphs.ts"

/** Control tokens of the published model. All speech tokens are smaller. */
export const specialTokens = {
  startSpeech: 6561,
  stopSpeech: 6562,
  exaggeration: 6563,
  startText: 255,
  stopText: 0,
  silence: 4299,
} as const

interface TokenOptions {
  /** Classifier-free guidance: strength of the text's influence; 0 runs one sequence instead of two. */
  readonly guidance: number
  /** Above 1, tokens that were already produced become less likely. */
  readonly repetitionPenalty: number
  readonly maxTokens: number
}

/** Runs one native call once the request's deadline is the earliest. */
export type WhenDue = <A>(work: Effect.Effect<A, EngineError>) => Effect.Effect<A, EngineError>

/** The tokenizer's ids between their control tokens, unless its own template has added them. */
export const withControls = (ids: ReadonlyArray<number>): ReadonlyArray<number> =>
  ids.at(-1) === specialTokens.startSpeech
    ? ids
    : [
        specialTokens.exaggeration,
        specialTokens.startText,
        ...ids,
        specialTokens.stopText,
        specialTokens.startSpeech,
        specialTokens.startSpeech,
      ]

/** Positions count from 0; control tokens of speech are at 0. */
const positionsOf = (ids: ReadonlyArray<number>): ReadonlyArray<number> => {
  let next = 0
  return ids.map((id) => (id >= specialTokens.startSpeech ? 0 : next++))
}

/** The voice followed by the text, for each row. The second row, for guidance, has no text. */
const opening = (
  voice: ClonedVoice,
  ids: ReadonlyArray<number>,
  embedded: Float32Array,
  width: number,
  rows: number,
): Float32Array => {
  const data = voice.features
  const rowSize = data.length + embedded.length
  const all = new Float32Array(rows * rowSize)
  for (let row = 0; row < rows; row++) {
    all.set(data, row * rowSize)
    all.set(embedded, row * rowSize + data.length)
    if (row === 0) continue
    for (const [at, id] of ids.entries()) {
      const from = row * rowSize + data.length + at * width
      if (id < specialTokens.startSpeech) all.fill(0, from, from + width)
    }
  }
  return all
}

/** The most probable of the speech tokens and the stop token; the first of equals. */
export const choose = (
  logits: ReadonlyArray<Float32Array>,
  said: ReadonlySet<number>,
  { guidance, repetitionPenalty }: Pick<TokenOptions, "guidance" | "repetitionPenalty">,
): number => {
  const [conditional, free] = logits
  let best = -1
  let bestLogit = Number.NEGATIVE_INFINITY
  for (let id = 0; id <= specialTokens.stopSpeech; id++) {
    if (id === specialTokens.startSpeech) continue
    const own = conditional?.[id] ?? Number.NEGATIVE_INFINITY
    const guided = free === undefined ? own : own + guidance * (own - (free[id] ?? 0))
    const logit = !said.has(id)
      ? guided
      : guided > 0
        ? guided / repetitionPenalty
        : guided * repetitionPenalty
    if (logit > bestLogit) {
      bestLogit = logit
      best = id
    }
  }
  return best
}

/** Speech tokens of one piece, without control tokens; at most `maxTokens`. Undefined if the model returned NaN. */
export const speechTokens = (
  graphs: ChatterboxGraphs,
  voice: ClonedVoice,
  textIds: ReadonlyArray<number>,
  options: TokenOptions,
  whenDue: WhenDue,
): Effect.Effect<ReadonlyArray<number> | undefined, EngineError> =>
  Effect.gen(function* () {
    const rows = options.guidance > 0 ? 2 : 1
    const ids = withControls(textIds)
    const tokens: Array<number> = []
    const said = new Set<number>([specialTokens.startSpeech])
    const first = Effect.flatMap(graphs.embed(ids, positionsOf(ids)), (embedded) =>
      graphs.step(graphs.empty(rows), rows, opening(voice, ids, embedded, graphs.width, rows)),
    )
    let { logits, state } = yield* whenDue(first)
    for (;;) {
      const token = choose(logits, said, options)
      if (token < 0) return undefined
      if (token === specialTokens.stopSpeech || tokens.length >= options.maxTokens) return tokens
      tokens.push(token)
      said.add(token)
      const before = state
      const next = Effect.flatMap(graphs.embed([token], [tokens.length]), (embedded) => {
        const both = new Float32Array(rows * embedded.length)
        for (let row = 0; row < rows; row++) both.set(embedded, row * embedded.length)
        return graphs.step(before, rows, both)
      })
      ;({ logits, state } = yield* whenDue(next))
    }
  })

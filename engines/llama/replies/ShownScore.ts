// Log probabilities as callers see them.
import type { SampledLogprob } from "../../protocol/Text.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"
import type { Score, ScoredToken } from "../sampling/Scores.ts"

export const shownScore = (vocabulary: Vocabulary, score: Score): SampledLogprob => {
  const shown = ({ logprob, token }: ScoredToken) => ({ ...vocabulary.shown(token), logprob })
  return { ...shown(score), top: score.top.map(shown) }
}

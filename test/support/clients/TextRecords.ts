// Parts of text replies that tests compare as a whole.
import { expect } from "vitest"

export const fingerprint = expect.stringMatching(/^fp_[0-9a-f]{16}$/)

/** The `usage` of a reply. */
export const usage = (
  prompt_tokens: number,
  completion_tokens: number,
  { cached = 0, reasoning = 0 }: { readonly cached?: number; readonly reasoning?: number } = {},
) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
  prompt_tokens_details: { cached_tokens: cached },
  completion_tokens_details: { reasoning_tokens: reasoning },
})

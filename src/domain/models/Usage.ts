// What a request used: tokens of a text or embedding model, or milliseconds of audio. Plain data.
import type { ModelKind } from "./ModelEntry.ts"

export interface Usage {
  readonly kind: ModelKind
  /** Counted with the model's own tokenizer; 0 for audio. */
  readonly inputTokens: number
  readonly outputTokens: number
  /**
   * Synthesized or transcribed audio, counted in samples after decoding and rounded up to whole milliseconds; 0 for
   * text.
   */
  readonly audioMs: number
}

export const textUsage = (inputTokens: number, outputTokens: number): Usage => ({
  kind: "text",
  inputTokens,
  outputTokens,
  audioMs: 0,
})

export const embeddingUsage = (inputTokens: number): Usage => ({
  kind: "embedding",
  inputTokens,
  outputTokens: 0,
  audioMs: 0,
})

export const audioUsage = (kind: "speech" | "transcription", samples: number, rateHz: number): Usage => ({
  kind,
  inputTokens: 0,
  outputTokens: 0,
  audioMs: Math.ceil((samples * 1000) / rateHz),
})

/** Everything that one organization used of one model in a period. */
export interface ModelUsage extends Usage {
  readonly model: string
  readonly requests: number
  readonly microDollars: number
}

/** One priced answer, as the ledger stores it. */
export interface UsageReceipt extends Usage {
  readonly receiptId: string
  readonly atMs: number
  readonly user: string
  readonly keyId: string
  readonly model: string
  readonly microDollars: number
}

export const totalMicroDollars = (rows: ReadonlyArray<{ readonly microDollars: number }>): number =>
  rows.reduce((sum, row) => sum + row.microDollars, 0)

// How many prompt tokens fit into one slice of time, learnt from the steps measured so far. Called by StepLoop.
// Pure: the clock is the caller's.

/** First guess, before anything was measured: a slice that even 2 ms a token keeps under 100 ms. */
const firstSliceTokens = 48

/** Steps smaller than this are mostly fixed cost and say little about the pace. */
const tellingTokens = 16

/** Weight of the newest step. A guess: fast enough to follow a machine that gets busy. */
const newest = 0.5

export class PromptPace {
  readonly #sliceMs: number
  readonly #maxTokens: number
  #msPerToken: number | undefined

  constructor(options: { readonly sliceMs: number; readonly maxTokens: number }) {
    this.#sliceMs = options.sliceMs
    this.#maxTokens = options.maxTokens
  }

  /** Prompt tokens for the next step, at least 1. */
  get sliceTokens(): number {
    const fitting =
      this.#msPerToken === undefined ? firstSliceTokens : Math.floor(this.#sliceMs / this.#msPerToken)
    return Math.max(1, Math.min(fitting, this.#maxTokens))
  }

  /** One step evaluated `tokens` tokens in `elapsedMs`. */
  observe(tokens: number, elapsedMs: number): void {
    const telling = Math.min(tellingTokens, this.sliceTokens)
    if (tokens < telling || elapsedMs <= 0) return
    const measured = elapsedMs / tokens
    this.#msPerToken =
      this.#msPerToken === undefined ? measured : newest * measured + (1 - newest) * this.#msPerToken
  }
}

// When a live session transcribes its audio ahead of the end of a turn, so that the result is there when the silence is long enough.
// A first preview comes early in a silence, or later where an answer is known to be ready soon: most silences are pauses, and what is
// made in them is made for nothing. A second one comes shortly before the silence ends the turn, by the time that the first one
// took. One that has heard most of the silence is the final result. Pure.
import type { Pause } from "./TurnDetector.ts"

/** Least silence before the first preview. Shorter ones stand within words: stops like "p" and "t" last up to this. A guess. */
export const firstPreviewMs = 80

/**
 * Silence at the end of a turn that the final result need not have heard, because it holds no speech: half of it, and never less
 * than this. A guess; a recogniser needs some silence to know that the last word is over.
 */
const leastUnheardMs = 100

/** How much of a silence that ends a turn the final result need not have heard, milliseconds. */
export const unheardMs = (endsAtMs: number): number => Math.max(leastUnheardMs, endsAtMs / 2)

/** Time between a preview and the end of the turn, as a share of the time that the last one took, and beside it. Guesses. */
const spareShare = 1.3
const spareMs = 25

/** Time left for a preview and the answer to it, as a multiple of what they took lately, and beside it. Guesses: the machine may be busier now. */
const leadShare = 2
const leadMs = 60

/** What was measured of earlier silences, milliseconds; absent: unknown, or previews are needed as early as they can be. */
export interface PreviewTimes {
  readonly previewMs?: number | undefined
  /** What is made of a preview. */
  readonly answerMs?: number | undefined
}

/** So much later a first preview may come, if it then is the final result and no second one is needed. A guess: one frame. */
const laterMs = 20

/** The silence after which the first preview begins. */
const firstAtMs = (endsAtMs: number, { answerMs, previewMs }: PreviewTimes): number => {
  const enoughMs = Math.max(firstPreviewMs, endsAtMs - unheardMs(endsAtMs))
  if (enoughMs <= firstPreviewMs + laterMs) return enoughMs
  if (previewMs === undefined) return firstPreviewMs
  // It would not be there at the end of the silence, and then be of no use.
  if (firstPreviewMs + previewMs + spareMs >= endsAtMs) return enoughMs
  if (answerMs === undefined) return firstPreviewMs
  return Math.max(firstPreviewMs, endsAtMs - (previewMs + answerMs) * leadShare - leadMs)
}

interface Preview {
  /** Silence that it has heard. */
  readonly quietMs: number
  readonly tookMs: number
}

/** It is never changed: a preview makes a new one, and so does the next silence. */
export class PreviewPlan {
  readonly #newest: Preview | undefined

  constructor(newest?: Preview) {
    this.#newest = newest
  }

  /** Whether a preview should begin now, where none is being made. */
  isDue({ endsAtMs, quietMs }: Pause, lately: PreviewTimes = {}): boolean {
    if (this.#newest === undefined) return quietMs >= firstAtMs(endsAtMs, lately)
    const unheard = unheardMs(endsAtMs)
    const isEnough = endsAtMs - this.#newest.quietMs <= unheard
    // Not before it would be enough.
    return !isEnough && endsAtMs - quietMs <= Math.min(unheard, this.#newest.tookMs * spareShare + spareMs)
  }

  made(preview: Preview): PreviewPlan {
    return new PreviewPlan(preview)
  }
}

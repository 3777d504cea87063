// Word error rate of transcripts, as a share. Words and edits are counted as `edgewise bench` counts them.
import { wordErrorPercent } from "#harness/figures/WordErrors.ts"

export interface Heard {
  readonly reference: string
  readonly heard: string
}

/** Computed over all pairs together, so that long clips have more weight. NaN where no reference has a word. */
export const wordErrorRate = (pairs: ReadonlyArray<Heard>): number =>
  wordErrorPercent(pairs.map(({ heard, reference }) => ({ spoken: reference, transcribed: heard }))) / 100

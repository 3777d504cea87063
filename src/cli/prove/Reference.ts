// What is publicly known of published weights: token ids of texts, entries of the mel table, phonemes, what a recording says. Each
// group names its source. A model without a reference for a check is not checked against itself instead: the report says which
// checks have none. References of other weights come from a JSON file in this form (`edgewise prove --references FILE`).
import { Schema } from "effect"

/** Where the outputs are published: a repository and path, a model card, or several records that agree. */
const from = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(300))

const sum = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

export const Reference = Schema.Struct({
  /** SHA-256 of weight files by their path in the repository. */
  sums: Schema.optionalKey(Schema.Struct({ from, files: Schema.Record(Schema.String, sum) })),
  /** Sizes of the network, by the names that the check of its adapter gives them (FileChecks.ts). */
  dimensions: Schema.optionalKey(
    Schema.Struct({
      from,
      values: Schema.Record(Schema.String, Schema.Union([Schema.Finite, Schema.String])),
    }),
  ),
  /** Token ids of texts, without the tokens that a model adds. For Kokoro the text is a row of phonemes. */
  tokens: Schema.optionalKey(
    Schema.Struct({
      from,
      texts: Schema.Array(
        Schema.Struct({
          text: Schema.String,
          ids: Schema.Array(Schema.Int),
          /** Whether names of control tokens in the text mean these tokens. */
          special: Schema.optionalKey(Schema.Boolean),
        }),
      ),
    }),
  ),
  /** The mel filters of a recogniser. */
  mel: Schema.optionalKey(
    Schema.Struct({
      from,
      rateHz: Schema.Int,
      fftSize: Schema.Int,
      hopSamples: Schema.Int,
      bins: Schema.Int,
      /** All weights together. */
      sum: Schema.Finite,
      /** Single weights: filter and FFT bin, counted from 0. */
      weights: Schema.Array(Schema.Tuple([Schema.Int, Schema.Int, Schema.Finite])),
    }),
  ),
  /** Phonemes of English texts before they become ids. */
  phonemes: Schema.optionalKey(
    Schema.Struct({
      from,
      texts: Schema.Array(
        Schema.Struct({
          text: Schema.String,
          phonemes: Schema.String,
          british: Schema.optionalKey(Schema.Boolean),
        }),
      ),
    }),
  ),
  /** A public recording on the hub, and phrases that a right transcript contains. */
  recording: Schema.optionalKey(
    Schema.Struct({
      from,
      /** `owner/repo`; of a data set `datasets/owner/repo`. */
      repository: Schema.String,
      revision: Schema.String,
      path: Schema.String,
      sha256: sum,
      /** What is said, for the count of wrong words. */
      text: Schema.String,
      phrases: Schema.NonEmptyArray(Schema.String),
    }),
  ),
  /** Questions with one right answer, and words that the answer contains. No publisher promises the model's exact words. */
  questions: Schema.optionalKey(
    Schema.Array(Schema.Struct({ ask: Schema.String, contains: Schema.NonEmptyArray(Schema.String) })),
  ),
})
export type Reference = typeof Reference.Type

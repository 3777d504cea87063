// The parameters of a transcription request, from query and form. Schemas only.
import { Schema } from "effect"
import { transcriptFormats } from "../audio/Transcript.ts"

/** Query and form values are texts; these read them. */
const flag = Schema.String.check(
  Schema.isPattern(/^(true|false|1|0)$/i, { message: "must be true or false" }),
)
const isTrue = (text: string | undefined): boolean => text === "1" || text?.toLowerCase() === "true"

/** A decimal number as any language prints one, exponents included; no hexadecimal, no blanks, no Infinity. */
const isTemperature = (text: string): boolean =>
  /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number(text) >= 0 && Number(text) <= 1

const temperature = Schema.String.check(
  Schema.makeFilter((text) => (isTemperature(text) ? undefined : "must be between 0 and 1")),
)

export const LanguageCode = Schema.String.check(
  Schema.isPattern(/^[a-z]{2}$/, { message: "must be an ISO-639-1 code such as en" }),
)

export const TranscriptionParameters = Schema.Struct({
  /** Required, by then from either place. */
  model: Schema.optionalKey(Schema.NonEmptyString),
  language: Schema.optionalKey(LanguageCode),
  prompt: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(4_096, { message: "must be at most 4096 characters" })),
  ),
  response_format: Schema.optionalKey(
    Schema.Literals(transcriptFormats).annotate({
      message: `must be one of ${transcriptFormats.join(", ")}`,
    }),
  ),
  temperature: Schema.optionalKey(temperature),
  punctuation: Schema.optionalKey(flag),
  stream: Schema.optionalKey(flag),
  sync: Schema.optionalKey(flag),
  /** Streams only: how long each step took, in the last event. */
  include_timing: Schema.optionalKey(flag),
})
export type TranscriptionParameters = typeof TranscriptionParameters.Type

export type TranscriptionMode = "job" | "stream" | "sync"

/** How the request is answered, or why that cannot be said. `modelInQuery` is where the model came from. */
export const modeOf = (
  parameters: TranscriptionParameters,
  modelInQuery: boolean,
): { readonly mode: TranscriptionMode } | { readonly problem: string } => {
  const stream = isTrue(parameters.stream)
  const sync = isTrue(parameters.sync)
  if (stream && sync) return { problem: "stream and sync exclude each other" }
  if (stream) return { mode: "stream" }
  return { mode: sync || !modelInQuery ? "sync" : "job" }
}

export const wantsTiming = (parameters: TranscriptionParameters): boolean => isTrue(parameters.include_timing)

export const punctuationOf = (
  parameters: Pick<TranscriptionParameters, "punctuation">,
): boolean | undefined => (parameters.punctuation === undefined ? undefined : isTrue(parameters.punctuation))

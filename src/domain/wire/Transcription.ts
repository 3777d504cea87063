// The parameters of a transcription request, from query and form (protocol 9.2). Schemas.
import { Schema } from "effect"
import { transcriptFormats } from "../audio/Transcript.ts"

/** Query and form values are texts; these schemas parse them. */
const flag = Schema.String.check(
  Schema.isPattern(/^(true|false|1|0)$/i, { message: "must be true or false" }),
)
/** The value of a flag whose form the schema has checked. */
export const isTrue = (text: string | undefined): boolean => text === "1" || text?.toLowerCase() === "true"

/** A decimal number, with an optional exponent. No hexadecimal, blanks or Infinity. */
const isTemperature = (text: string): boolean =>
  /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number(text) >= 0 && Number(text) <= 1

const temperature = Schema.String.check(
  Schema.makeFilter((text) => (isTemperature(text) ? undefined : "must be between 0 and 1")),
)

export const LanguageCode = Schema.String.check(
  Schema.isPattern(/^[a-z]{2}$/, { message: "must be an ISO-639-1 code such as en" }),
)

/** More than there are. */
const maxLanguages = 256

/** Languages that a client expects. */
export const LanguageCodes = Schema.Array(LanguageCode).check(
  Schema.isMaxLength(maxLanguages, { message: `must be at most ${maxLanguages} languages` }),
)

/** Most phrases of a request, and most characters of each. A guess: all names of a company's directory, or of a catalogue's page. */
export const mostKeywords = 1_000
export const mostKeywordCharacters = 64

/** Control characters, and halves of surrogate pairs. */
const notText = /[\p{Cc}\p{Cs}]/u

const Keyword = Schema.String.check(
  Schema.makeFilter((phrase) => {
    if (notText.test(phrase)) return "must be text without control characters"
    return phrase.trim() !== "" && phrase.length <= mostKeywordCharacters
      ? undefined
      : `must have 1 to ${mostKeywordCharacters} characters`
  }),
)

/** Phrases that may occur in the audio. */
export const Keywords = Schema.Array(Keyword).check(
  Schema.isMaxLength(mostKeywords, { message: `must be at most ${mostKeywords} phrases` }),
)

/** Names of the parameter in queries and forms: OpenAI's, without brackets, and Deepgram's. */
export const keywordNames = ["keywords[]", "keywords", "keyterm"] as const

export const TranscriptionParameters = Schema.Struct({
  /** Required, in the query or the form; checked after both are joined. */
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
  /** Streams only: adds the times of the steps to the last event. */
  include_timing: Schema.optionalKey(flag),
})
export type TranscriptionParameters = typeof TranscriptionParameters.Type

type TranscriptionMode = "job" | "stream" | "sync"

/**
 * The mode of the request (protocol 9.3), or why its flags contradict each other. `modelInQuery` is true if the query
 * names the model.
 */
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

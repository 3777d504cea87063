// The parameters of a live transcription, from the query. Schemas only.
import { Schema } from "effect"
import { TranscriptionParameters } from "./Transcription.ts"

/** The contract: 0.25 to 10 seconds, 1 where nothing is said. */
export const windowSeconds = { minimum: 0.25, maximum: 10, default: 1 } as const

const isWindow = (text: string): boolean => {
  const seconds = Number(text)
  return /^\d+(\.\d+)?$/.test(text) && seconds >= windowSeconds.minimum && seconds <= windowSeconds.maximum
}

export const LiveParameters = Schema.Struct({
  /** Without it the node's first model that transcribes. */
  model: Schema.optionalKey(Schema.String),
  language: TranscriptionParameters.fields.language,
  prompt: TranscriptionParameters.fields.prompt,
  punctuation: TranscriptionParameters.fields.punctuation,
  window_s: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((text) =>
        isWindow(text)
          ? undefined
          : `must be between ${windowSeconds.minimum} and ${windowSeconds.maximum} seconds`,
      ),
    ),
  ),
  /** Whether the session says when speech starts and stops. */
  vad_events: TranscriptionParameters.fields.stream,
})
export type LiveParameters = typeof LiveParameters.Type

/** What a flag of the query says; the schema has seen that it is one. */
export const isTrue = (flag: string | undefined): boolean => flag === "1" || flag?.toLowerCase() === "true"

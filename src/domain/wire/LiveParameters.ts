// The query parameters of a live transcription. Schemas.
import { Schema } from "effect"
import { TranscriptionParameters } from "./Transcription.ts"

/** Limits and default of `window_s` (protocol 10.1). */
export const windowSeconds = { minimum: 0.25, maximum: 10, default: 1 } as const

const isWindow = (text: string): boolean => {
  const seconds = Number(text)
  return /^\d+(\.\d+)?$/.test(text) && seconds >= windowSeconds.minimum && seconds <= windowSeconds.maximum
}

export const LiveParameters = Schema.Struct({
  /** Default: the first deployed model that transcribes. */
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
  /** True: the session also reports when speech starts and stops. */
  vad_events: TranscriptionParameters.fields.stream,
})
export type LiveParameters = typeof LiveParameters.Type

// Events of speech as a stream of server-sent events (protocol 8.10). Schemas only.
import { Schema } from "effect"

/** Seconds from the first sample of the reply. */
const Word = Schema.Struct({ word: Schema.String, start: Schema.Finite, end: Schema.Finite })

export const SpeechEvent = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("speech.audio.delta"),
    /** Bytes of the reply's format, in base64. */
    audio: Schema.String,
  }),
  /** Not OpenAI's. */
  Schema.Struct({ type: Schema.Literal("speech.audio.words"), words: Schema.Array(Word) }),
  Schema.Struct({
    type: Schema.Literal("speech.audio.done"),
    usage: Schema.Struct({ type: Schema.Literal("duration"), seconds: Schema.Finite }),
  }),
])
export type SpeechEvent = typeof SpeechEvent.Type

// A speech request on the wire (protocol 8.1), the rules that need no model, and the formats. Schemas and data.
import { Schema } from "effect"
import type { AudioFormat } from "../audio/Audio.ts"

export const SpeechRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  input: Schema.String.check(
    Schema.makeFilter((text) => (text.trim() === "" ? "must not be empty" : undefined)),
  ),
  voice: Schema.String.check(
    Schema.makeFilter((text) => (text.trim() === "" ? "must not be empty" : undefined)),
  ),
  voice_transcript: Schema.optionalKey(Schema.NullOr(Schema.String)),
  language: Schema.optionalKey(Schema.NullOr(Schema.String)),
  response_format: Schema.optionalKey(Schema.NullOr(Schema.String)),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  /** `sse` makes the reply a stream of events (protocol 8.10). */
  stream_format: Schema.optionalKey(Schema.NullOr(Schema.Literals(["audio", "sse"]))),
  /** Not OpenAI's; with `sse` alone. */
  timestamp_granularities: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Literal("word")))),
  speed: Schema.optionalKey(
    Schema.NullOr(
      Schema.Finite.check(
        Schema.isBetween({ minimum: 0.25, maximum: 4 }, { message: "must be between 0.25 and 4" }),
      ),
    ),
  ),
})
export type SpeechRequest = typeof SpeechRequest.Type

export const contentTypes: Readonly<Record<AudioFormat, string>> = {
  pcm: "audio/pcm",
  wav: "audio/wav",
  mp3: "audio/mpeg",
  opus: "audio/ogg; codecs=opus",
}

const batchFormats = ["pcm", "wav", "mp3"] as const
const streamFormats = ["pcm", "opus"] as const

/** Whether replies in this format are sent while they are made: the others have their length or their tables in their heads. */
export const isStreamed = (format: AudioFormat): boolean => streamFormats.some((known) => known === format)

const allFormats = [...new Set([...batchFormats, ...streamFormats])]

/** The format of the reply, or what is wrong with the requested one. `events`: the reply is a stream of events. */
export const formatOf = (
  asked: string,
  stream: boolean,
  events = false,
): { readonly format: AudioFormat } | { readonly problem: string } => {
  const formats: ReadonlyArray<AudioFormat> = events ? allFormats : stream ? streamFormats : batchFormats
  const format = formats.find((known) => known === asked)
  if (format !== undefined) return { format }
  if (events) return { problem: `must be one of ${formats.join(", ")}` }
  return {
    problem: stream
      ? "must be pcm or opus with stream: true, or pcm, wav or mp3 without it"
      : "must be pcm, wav or mp3, or opus with stream: true",
  }
}

/**
 * The longest audio of a letter or a blank at speed 1, milliseconds. Ordinary text takes 60 to 80 ms per character, a
 * row of the letter W 420 (measured).
 */
const msPerLetter = 600

/**
 * The same for digits and symbols, which are read as words: "≥" takes 1,070 ms, the Roman numeral "ↇ" 1,230 (measured).
 */
const msPerSymbol = 1_500

/** Letters, marks and blanks, except in the blocks of symbols, where letters such as "Ↄ" are read by their names. */
const letterOrBlank = /^(?![\u2000-\u2bff])[\p{L}\p{M}\s]$/u

/** The longest audio of a text at speed 1, milliseconds; a reservation assumes it. */
export const longestSpeechMs = (text: string): number => {
  let total = 0
  for (const character of text) total += letterOrBlank.test(character) ? msPerLetter : msPerSymbol
  return total
}

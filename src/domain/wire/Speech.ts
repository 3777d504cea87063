// A speech request on the wire, its rules that need no model, and what each format is called. Schemas and data.
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

/** The format of the reply, or what is wrong with what was asked for. */
export const formatOf = (
  asked: string,
  stream: boolean,
): { readonly format: AudioFormat } | { readonly problem: string } => {
  const formats: ReadonlyArray<AudioFormat> = stream ? streamFormats : batchFormats
  const format = formats.find((known) => known === asked)
  if (format !== undefined) return { format }
  const mode = stream ? "with stream: true" : "without stream: true"
  return { problem: `must be one of ${formats.join(", ")} ${mode}` }
}

/**
 * The longest audio that a letter or a blank can become at speed 1, milliseconds. Ordinary text takes 60 to 80 ms a
 * character, a row of the letter W 420 (measured).
 */
const msPerLetter = 600

/** The same of digits and symbols, which are read as words: "≥" takes 1,070 ms, the Roman numeral "ↇ" 1,230 (measured). */
const msPerSymbol = 1_500

/** Letters, marks and blanks; not those of the blocks of symbols, where "Ↄ" is a letter that is read by its name. */
const letterOrBlank = /^(?![\u2000-\u2bff])[\p{L}\p{M}\s]$/u

/** The longest audio that a text can become at speed 1, milliseconds: what a reservation assumes. */
export const longestSpeechMs = (text: string): number => {
  let total = 0
  for (const character of text) total += letterOrBlank.test(character) ? msPerLetter : msPerSymbol
  return total
}

// A transcript, and the five formats in which it is sent (protocol 9.4). Pure.

import type { Punctuating } from "../language/Punctuated.ts"

interface TranscriptWord {
  readonly word: string
  readonly start: number
  readonly end: number
}

/** A token of a segment's text. */
export interface SegmentToken {
  /** Its text as UTF-8, which may be part of a character. */
  readonly bytes: ReadonlyArray<number>
  /** Natural log-probability with which it was chosen. */
  readonly logprob: number
}

/** Times are seconds from the start of the audio. */
export interface TranscriptSegment {
  readonly start: number
  readonly end: number
  /**
   * Begins with a space in languages that separate words with spaces: the text of a file is all segments joined with
   * nothing between them, then trimmed.
   */
  readonly text: string
  readonly tokens: ReadonlyArray<number>
  readonly temperature: number
  readonly avgLogprob: number
  readonly compressionRatio: number
  readonly noSpeechProb: number
  /** Start of the engine's window that contained it, seconds. */
  readonly windowStart: number
  /** Exact to the encoder's frame for transducers, by attention for Whisper exports that return it. Others estimate them inside the segment by length. */
  readonly words?: ReadonlyArray<TranscriptWord>
  /** Where they were asked for: of the text as the model wrote it, without added or removed marks. */
  readonly logprobs?: ReadonlyArray<SegmentToken>
}

export interface Transcript {
  readonly text: string
  /** ISO-639-1. */
  readonly language: string
  /** Seconds of decoded audio. */
  readonly duration: number
  readonly segments: ReadonlyArray<TranscriptSegment>
}

/** How far a file has been transcribed, with everything needed to continue from there. Plain data. */
export interface TranscriptProgress {
  readonly segments: ReadonlyArray<TranscriptSegment>
  /** Samples at 16 kHz whose transcript is final. */
  readonly samples: number
  /** The requested language, or the one detected so far. */
  readonly language: string | undefined
  /** The engine's conditioning for the next window. */
  readonly previousTokens: ReadonlyArray<number>
  /** State of the punctuation after the text so far. Absent: none. */
  readonly punctuating?: Punctuating
}

export const transcriptFormats = ["json", "text", "srt", "vtt", "verbose_json"] as const
export type TranscriptFormat = (typeof transcriptFormats)[number]

/** Joins the segments' texts. Each begins with a space if its language separates words by spaces. */
export const joinTexts = (texts: ReadonlyArray<string>): string => texts.join("").trim()

/** Three decimals (protocol 9.4): recognised times are far less exact than a millisecond. */
const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000

const clock = (ms: number, decimalMark: string): string => {
  const part = (value: number, width: number) => String(value).padStart(width, "0")
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor(ms / 60_000) % 60
  return `${part(hours, 2)}:${part(minutes, 2)}:${part(Math.floor(ms / 1000) % 60, 2)}${decimalMark}${part(ms % 1000, 3)}`
}

/** Caption formats allow neither line ends nor arrows within a text. */
const captionText = (text: string): string =>
  text
    .replaceAll("\0", "")
    .replace(/\s*[\r\n\u2028\u2029]+\s*/g, " ")
    .replace(/--+>/g, "->")
    .trim()

/** A longer cue is cut between words: about two lines. Guesses. */
export const longestCue = { seconds: 7, characters: 84 } as const

/** Formats whose cues may be cut at words. */
export const hasCues = (format: TranscriptFormat): boolean => format === "srt" || format === "vtt"

interface Caption {
  readonly startMs: number
  readonly endMs: number
  readonly text: string
}

type Cue = Pick<TranscriptSegment, "start" | "end" | "text">

/** A segment whose words have times as cues that are short enough to be read, cut between words; others as they are. */
const cuesOf = ({ end, start, text, words = [] }: TranscriptSegment): ReadonlyArray<Cue> => {
  const { characters, seconds } = longestCue
  if (words.length === 0 || (end - start <= seconds && text.trim().length <= characters))
    return [{ start, end, text }]
  const cues: Array<{ start: number; end: number; from: number }> = []
  let at = 0
  for (const [i, word] of words.entries()) {
    const found = text.indexOf(word.word, at)
    // The words are not those of the text.
    if (found === -1) return [{ start, end, text }]
    at = found + word.word.length
    const cue = cues.at(-1)
    const last = i === words.length - 1 ? end : word.end
    if (cue === undefined || last - cue.start > seconds || at - cue.from > characters)
      cues.push({ start: i === 0 ? start : word.start, end: last, from: i === 0 ? 0 : found })
    else cue.end = last
  }
  return cues.map((cue, i) => ({
    start: cue.start,
    end: cue.end,
    text: text.slice(cue.from, cues[i + 1]?.from),
  }))
}

/**
 * Segments as cues in whole milliseconds. A cue must end after it starts, and players need them in order: a segment
 * without length gets one millisecond.
 */
const captions = (segments: ReadonlyArray<TranscriptSegment>): ReadonlyArray<Caption> => {
  let earliestMs = 0
  return segments.flatMap(cuesOf).flatMap(({ end, start, text }) => {
    const shown = captionText(text)
    if (shown === "") return []
    const startMs = Math.max(earliestMs, Math.round(start * 1000))
    earliestMs = startMs
    return [{ startMs, endMs: Math.max(startMs + 1, Math.round(end * 1000)), text: shown }]
  })
}

export const srt = (segments: ReadonlyArray<TranscriptSegment>): string =>
  captions(segments)
    .map(
      ({ endMs, startMs, text }, index) =>
        `${index + 1}\n${clock(startMs, ",")} --> ${clock(endMs, ",")}\n${text}\n\n`,
    )
    .join("")

export const vtt = (segments: ReadonlyArray<TranscriptSegment>): string =>
  `WEBVTT\n\n${captions(segments)
    .map(
      ({ endMs, startMs, text }) =>
        `${clock(startMs, ".")} --> ${clock(endMs, ".")}\n${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")}\n\n`,
    )
    .join("")}`

/** Whether the text is in the language that is spoken, or in English. */
export type TranscriptTask = "transcribe" | "translate"

const verbose = (
  { duration, language, segments, text }: Transcript,
  granularities: ReadonlyArray<string>,
  task: TranscriptTask,
) => ({
  task,
  language,
  duration: rounded(duration),
  text,
  segments: segments.map((segment, id) => ({
    id,
    // OpenAI's unit: frames of 10 ms.
    seek: Math.round(segment.windowStart * 100),
    start: rounded(segment.start),
    end: rounded(segment.end),
    text: segment.text,
    tokens: segment.tokens,
    temperature: segment.temperature,
    avg_logprob: segment.avgLogprob,
    compression_ratio: segment.compressionRatio,
    no_speech_prob: segment.noSpeechProb,
  })),
  ...(granularities.includes("word")
    ? {
        words: segments.flatMap(({ words = [] }) =>
          words.map(({ end, start, word }) => ({ word, start: rounded(start), end: rounded(end) })),
        ),
      }
    : {}),
})

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The token's text; of a part of a character its bytes, as `bytes:\xe4`. */
const textOfToken = (bytes: ReadonlyArray<number>): string => {
  try {
    return utf8.decode(Uint8Array.from(bytes))
  } catch {
    return `bytes:${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`
  }
}

/** The tokens of these segments as OpenAI writes them. */
export const logprobsOf = (segments: ReadonlyArray<Pick<TranscriptSegment, "logprobs">>) =>
  segments.flatMap(({ logprobs = [] }) =>
    logprobs.map(({ bytes, logprob }) => ({ token: textOfToken(bytes), bytes, logprob })),
  )

/** A JSON object, or a plain text. */
type Rendered = { readonly json: object } | { readonly text: string; readonly contentType: string }

export const render = (
  transcript: Transcript,
  format: TranscriptFormat,
  granularities: ReadonlyArray<string> = [],
  task: TranscriptTask = "transcribe",
  withLogprobs = false,
): Rendered => {
  switch (format) {
    case "json":
      return {
        json: {
          text: transcript.text,
          ...(withLogprobs ? { logprobs: logprobsOf(transcript.segments) } : {}),
        },
      }
    case "verbose_json":
      return { json: verbose(transcript, granularities, task) }
    case "text":
      return { text: `${transcript.text}\n`, contentType: "text/plain; charset=utf-8" }
    case "srt":
      return { text: srt(transcript.segments), contentType: "text/plain; charset=utf-8" }
    case "vtt":
      return { text: vtt(transcript.segments), contentType: "text/vtt; charset=utf-8" }
  }
}

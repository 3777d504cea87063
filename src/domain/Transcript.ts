// A transcript, and the five forms in which it is given out. Pure; used by the transcription handlers and jobs.

export interface TranscriptWord {
  readonly word: string
  readonly start: number
  readonly end: number
}

/** Times are seconds from the start of the audio. */
export interface TranscriptSegment {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly tokens: ReadonlyArray<number>
  readonly temperature: number
  readonly avgLogprob: number
  readonly compressionRatio: number
  readonly noSpeechProb: number
  readonly words?: ReadonlyArray<TranscriptWord>
}

export interface Transcript {
  readonly text: string
  /** ISO-639-1. */
  readonly language: string
  /** Seconds of decoded audio. */
  readonly duration: number
  readonly segments: ReadonlyArray<TranscriptSegment>
}

export const transcriptFormats = ["json", "text", "srt", "vtt", "verbose_json"] as const
export type TranscriptFormat = (typeof transcriptFormats)[number]

/** The segments' texts as one: each starts with a space where its language puts one between words. */
export const joinTexts = (texts: ReadonlyArray<string>): string => texts.join("").trim()

/** Three decimals are a sample's width at 16 kHz and then some; more digits would be noise. */
const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000

const clock = (seconds: number, decimalMark: string): string => {
  const ms = Math.round(seconds * 1000)
  const part = (value: number, width: number) => String(value).padStart(width, "0")
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor(ms / 60_000) % 60
  return `${part(hours, 2)}:${part(minutes, 2)}:${part(Math.floor(ms / 1000) % 60, 2)}${decimalMark}${part(ms % 1000, 3)}`
}

/** A caption's text may hold neither a blank line nor an arrow: both mean something in these formats. */
const captionText = (text: string): string =>
  text
    .trim()
    .replace(/\s*\n\s*/g, " ")
    .replaceAll("-->", "->")

const captions = (segments: ReadonlyArray<TranscriptSegment>) =>
  segments
    .map((segment) => ({ ...segment, text: captionText(segment.text) }))
    .filter(({ text }) => text !== "")

export const srt = (segments: ReadonlyArray<TranscriptSegment>): string =>
  captions(segments)
    .map(
      ({ end, start, text }, index) =>
        `${index + 1}\n${clock(start, ",")} --> ${clock(end, ",")}\n${text}\n\n`,
    )
    .join("")

export const vtt = (segments: ReadonlyArray<TranscriptSegment>): string =>
  `WEBVTT\n\n${captions(segments)
    .map(
      ({ end, start, text }) =>
        `${clock(start, ".")} --> ${clock(end, ".")}\n${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}\n\n`,
    )
    .join("")}`

const verbose = (
  { duration, language, segments, text }: Transcript,
  granularities: ReadonlyArray<string>,
) => ({
  task: "transcribe",
  language,
  duration: rounded(duration),
  text,
  segments: segments.map((segment, id) => ({
    id,
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

/** A JSON object, or a plain text. */
export type Rendered = { readonly json: object } | { readonly text: string; readonly contentType: string }

export const render = (
  transcript: Transcript,
  format: TranscriptFormat,
  granularities: ReadonlyArray<string> = [],
): Rendered => {
  switch (format) {
    case "json":
      return { json: { text: transcript.text } }
    case "verbose_json":
      return { json: verbose(transcript, granularities) }
    case "text":
      return { text: `${transcript.text}\n`, contentType: "text/plain; charset=utf-8" }
    case "srt":
      return { text: srt(transcript.segments), contentType: "text/plain; charset=utf-8" }
    case "vtt":
      return { text: vtt(transcript.segments), contentType: "text/vtt; charset=utf-8" }
  }
}

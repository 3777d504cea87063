// The caption of a running live session: the difference between two hypotheses as an event (protocol 10.3). Pure.
import { codePointCount } from "../language/StripMarkdown.ts"

/** A token with the natural log-probability with which it was chosen; its text as UTF-8, which may be part of a character. */
interface LiveToken {
  readonly bytes: ReadonlyArray<number>
  readonly logprob: number
}

/** The transcript of the audio so far. */
export interface LiveHypothesis {
  readonly text: string
  /** Unicode code points at the start of `text` that no later audio changes. */
  readonly stableChars: number
  /** ISO-639-1. Undefined before any speech was recognised. */
  readonly language: string | undefined
  /** Audio that it covers, milliseconds from the start. */
  readonly audioMs: number
  /** The text's tokens as the model wrote it, where they were asked for and are known. */
  readonly logprobs?: ReadonlyArray<LiveToken>
}

/** What a hypothesis has beside its text. */
type Rest = Omit<LiveHypothesis, "text" | "stableChars">

export const silence: LiveHypothesis = { text: "", stableChars: 0, language: undefined, audioMs: 0 }

/** Why a session's audio ends. */
export type LiveEnd = "stop" | "limit" | "idle" | "drain"

export interface FinalResult {
  readonly hypothesis: LiveHypothesis
  readonly end: LiveEnd
}

/** One change of the caption, as sent in an event. */
interface CaptionDelta {
  /** 1, 2, 3, … */
  readonly rev: number
  readonly op: "append" | "replace"
  readonly delta: string
  readonly stable_chars: number
  readonly audio_ms: number
}

/** The change from the client's caption to the newest hypothesis. Hypotheses in between may have been skipped. */
export const deltaOf = (shown: string, next: LiveHypothesis, rev: number): CaptionDelta => {
  const extended = next.text.startsWith(shown)
  return {
    rev,
    op: extended ? "append" : "replace",
    delta: extended ? next.text.slice(shown.length) : next.text,
    stable_chars: next.stableChars,
    audio_ms: next.audioMs,
  }
}

/**
 * A hypothesis from the engine's texts: `closed` from audio whose transcript is final, `open` from audio whose
 * transcript may still change.
 */
export const hypothesisOf = (closed: string, open: string, rest: Rest): LiveHypothesis => ({
  ...rest,
  text: (closed + open).trim(),
  // Spaces at its end are part of the text only if something follows.
  stableChars: codePointCount(closed.trim()),
})

/** A hypothesis whose text later audio only extends. Its last word may get more letters; those before it are stable. */
export const growingHypothesis = (text: string, rest: Rest): LiveHypothesis => {
  const shown = text.trim()
  const lastSpace = shown.search(/\s\S*$/u)
  return { ...rest, text: shown, stableChars: codePointCount(shown.slice(0, Math.max(0, lastSpace))) }
}

const utf8 = new TextEncoder()

/** How many of the first tokens spell `text`, which is the beginning of what all of them spell; 0 if they spell something else. */
export const tokensOfText = (tokens: ReadonlyArray<LiveToken>, text: string): number => {
  const spelled = utf8.encode(text)
  let at = 0
  let hasBegun = false
  for (const [i, { bytes }] of tokens.entries()) {
    if (at === spelled.length) return i
    for (const byte of bytes) {
      // A text has no spaces at its beginning.
      if (!hasBegun && byte === 0x20) continue
      hasBegun = true
      if (at === spelled.length) return i
      if (spelled[at++] !== byte) return 0
    }
  }
  return at === spelled.length ? tokens.length : 0
}

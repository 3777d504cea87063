// What a live session says while its speaker still speaks: how one hypothesis becomes the next on the wire, and how a
// client keeps the caption. Pure; used by the live endpoints, and by tests from the client's side.

/** What the audio so far says. */
export interface LiveHypothesis {
  readonly text: string
  /** Unicode code points at the start of `text` that no later audio changes. */
  readonly stableChars: number
  /** ISO-639-1, or undefined before anything was heard. */
  readonly language: string | undefined
  /** Audio that it covers, milliseconds from the start. */
  readonly audioMs: number
}

export const silence: LiveHypothesis = { text: "", stableChars: 0, language: undefined, audioMs: 0 }

/** One step of the caption, as it stands in an event. */
export interface CaptionDelta {
  /** 1, 2, 3, … */
  readonly rev: number
  readonly op: "append" | "replace"
  readonly delta: string
  readonly stable_chars: number
  readonly audio_ms: number
}

/** The step from what the client has to the newest hypothesis; hypotheses in between may have been left out. */
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

/** The caption after an event: what docs/live.md gives to clients. */
export const captionAfter = (caption: string, { delta, op }: Pick<CaptionDelta, "op" | "delta">): string =>
  op === "append" ? caption + delta : delta

const codePoints = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

/**
 * A hypothesis from its texts as the engine gave them. `closed` comes from audio that is finished with, `open` from
 * what may still be heard otherwise.
 */
export const hypothesisOf = (
  closed: string,
  open: string,
  rest: Pick<LiveHypothesis, "language" | "audioMs">,
): LiveHypothesis => ({
  ...rest,
  text: (closed + open).trim(),
  // Spaces at its end are part of the text only if something follows.
  stableChars: codePoints(closed.trim()),
})

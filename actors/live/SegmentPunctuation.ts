// The segments of one engine call with the punctuation that the caller requested. Knows no engine and no audio.

import type { TranscriptSegment } from "#domain/audio/Transcript.ts"
import {
  nothingPunctuated,
  type Punctuating,
  type PunctuationChoice,
  punctuated,
} from "#domain/language/Punctuated.ts"
import { interpolatedWords } from "#engines/shared/listening/Words.ts"

const isBlank = (text: string): boolean => text.trim() === ""

type Words = NonNullable<TranscriptSegment["words"]>

/** The words of the new text: each keeps its times where there are as many words as before, and else they are interpolated. */
const retimed = (words: Words, text: string, { end, start }: TranscriptSegment, language: string): Words => {
  const interpolated = interpolatedWords(text, start, end, language)
  return interpolated.length === words.length
    ? words.map((word, at) => ({ ...word, word: interpolated[at]!.word }))
    : interpolated
}

const withText = (segment: TranscriptSegment, text: string, language: string): TranscriptSegment => {
  if (text === segment.text) return segment
  const { words } = segment
  return {
    ...segment,
    text,
    ...(words === undefined ? {} : { words: retimed(words, text, segment, language) }),
  }
}

export class SegmentPunctuation {
  readonly #choice: PunctuationChoice
  readonly #language: string
  /** Segments of a piece that is not complete: whether the model punctuates it is not known yet. */
  #piece: Array<TranscriptSegment> = []
  #current: Punctuating

  constructor(choice: PunctuationChoice, language: string, state: Punctuating = nothingPunctuated) {
    this.#choice = choice
    this.#language = language
    this.#current = state
  }

  /** The state of the text after the pieces that are complete. */
  get state(): Punctuating {
    return this.#current
  }

  /** The segments that are now certain; only those of a piece that may get punctuation wait for its end. */
  push(segment: TranscriptSegment): ReadonlyArray<TranscriptSegment> {
    if (this.#choice !== true) return this.#shown([segment])
    const complete =
      this.#piece.length > 0 && this.#piece[0]!.windowStart !== segment.windowStart ? this.end() : []
    this.#piece.push(segment)
    return complete
  }

  /** The engine's call has ended, or a piece of it. */
  end(): ReadonlyArray<TranscriptSegment> {
    const piece = this.#piece
    this.#piece = []
    return piece.length === 0 ? [] : this.#shown(piece)
  }

  /** A segment without text is dropped. */
  #shown(segments: ReadonlyArray<TranscriptSegment>): ReadonlyArray<TranscriptSegment> {
    if (this.#choice === undefined) return segments
    const [texts, state] = punctuated(
      this.#choice,
      this.#language,
      segments.map(({ text }) => text),
      this.#current,
    )
    this.#current = state
    return segments.flatMap((segment, at) =>
      isBlank(texts[at]!) ? [] : [withText(segment, texts[at]!, this.#language)],
    )
  }
}

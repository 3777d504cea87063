// The events of a speech reply in server-sent events: its audio in base64, its words with times, its end. Pure.
import { samplesToMs, speechRateHz } from "#domain/audio/Audio.ts"
import { type SpokenWord, WordTimes, type WrittenWord } from "#domain/audio/TimedWords.ts"
import type { SpeechEvent } from "#domain/wire/events/SpeechEvents.ts"

const frame = (event: SpeechEvent): string => `data: ${JSON.stringify(event)}\n\n`

const seconds = (samples: number): number => Math.round(samplesToMs(samples, speechRateHz)) / 1000

export class SpeechFrames {
  readonly #text: string
  readonly #times: WordTimes | undefined
  #told = 0

  /** `text`: whose words are told; undefined: none are. */
  constructor(text: string | undefined) {
    this.#text = text ?? ""
    this.#times = text === undefined ? undefined : new WordTimes(text)
  }

  /** The engine told these words, with audio that follows. */
  heard(words: ReadonlyArray<SpokenWord> | undefined): void {
    if (words !== undefined) this.#times?.push(words)
  }

  /** Encoded audio, behind the words that are known. The last one waits: what comes next may belong to it. */
  audio(bytes: Uint8Array): Uint8Array {
    const audio = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")
    return Buffer.from(this.#words(1) + frame({ type: "speech.audio.delta", audio }))
  }

  /** The end of a complete reply of so many samples. */
  done(samples: number): Uint8Array {
    const usage = { type: "duration", seconds: seconds(samples) } as const
    return Buffer.from(this.#words(0) + frame({ type: "speech.audio.done", usage }))
  }

  #words(waiting: number): string {
    const { found } = this.#times ?? { found: [] }
    const known: ReadonlyArray<WrittenWord> = found.slice(
      this.#told,
      Math.max(this.#told, found.length - waiting),
    )
    if (known.length === 0) return ""
    this.#told += known.length
    const words = known.map(({ end, from, start, to }) => ({
      word: this.#text.slice(from, to),
      start: seconds(start),
      end: seconds(end),
    }))
    return frame({ type: "speech.audio.words", words })
  }
}

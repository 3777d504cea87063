// The microphone of a client: sends pieces of audio by the clock, the speech it is given and otherwise the noise of a quiet
// room. A piece is sent when its last sample was spoken; late pieces do not delay those after them.
import { realtimeHz } from "../client/RealtimeRate.ts"
import { Random } from "../random/Random.ts"

/** Amplitude of the room, of 32,768: −75 dBFS. A guess: a headset in a quiet room. */
const roomAmplitude = 10

/** A second of the room, which is repeated. */
const room = (() => {
  const random = new Random(1, 0)
  return Int16Array.from({ length: realtimeHz }, () => random.below(2 * roomAmplitude + 1) - roomAmplitude)
})()

const nothing = new Int16Array(0)

interface Speech {
  readonly at: number
  readonly samples: Int16Array
}

/** Sound from elsewhere, in place of clips: s16, 24 kHz. */
export interface SoundSource {
  /** So many samples; undefined while there are fewer. After its end the rest, filled with silence. */
  readonly take: (samples: number) => Int16Array | undefined
  /** Everything was taken: only the room is left. */
  readonly isOver: () => boolean
}

interface MicrophoneTerms {
  readonly pieceMs: number
  /** Send the room between speeches; false: as if a key were held while speaking. */
  readonly isOpen: boolean
  readonly source?: SoundSource | undefined
  /** s16, 24 kHz */
  readonly send: (samples: Int16Array) => void
}

export class Microphone {
  readonly #terms: MicrophoneTerms
  readonly #pieceSamples: number
  #startedMs = 0
  /** Samples that have been sent or passed by. */
  #position = 0
  #speech: Speech | undefined
  #onSaid: (() => void) | undefined
  #isLate = false
  #timer: NodeJS.Timeout | undefined

  constructor(terms: MicrophoneTerms) {
    this.#terms = terms
    this.#pieceSamples = Math.round((terms.pieceMs * realtimeHz) / 1000)
  }

  start(): void {
    this.#startedMs = performance.now()
    this.#await()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** When a sample was spoken, on the clock of performance.now(). */
  timeOf(position: number): number {
    return this.#startedMs + (position * 1000) / realtimeHz
  }

  /**
   * Speaks from the next piece on.
   * @param onSaid runs when the piece with its last sample has been sent
   * @returns the position of its first sample
   */
  say(samples: Int16Array, onSaid: () => void): number {
    this.#speech = { at: this.#position, samples }
    this.#onSaid = onSaid
    return this.#position
  }

  /** Ends of pieces: a speech of that length from `at` on is sent up to there. */
  endOf(at: number, samples: number): number {
    return at + Math.ceil(samples / this.#pieceSamples) * this.#pieceSamples
  }

  /** What was sent at positions that lie around the last speech. */
  sent(from: number, to: number): Int16Array {
    const out = new Int16Array(Math.max(0, to - from))
    for (let i = 0; i < out.length; i++) {
      const position = from + i
      const spoken = this.#speech === undefined ? 0 : (this.#speech.samples[position - this.#speech.at] ?? 0)
      out[i] = Math.max(-32_768, Math.min(32_767, spoken + room[position % room.length]!))
    }
    return out
  }

  #await(): void {
    const dueMs = this.timeOf(this.#position + this.#pieceSamples)
    // Of a source that has nothing yet, the next piece is long due.
    const leastMs = this.#isLate ? this.#terms.pieceMs / 2 : 0
    this.#timer = setTimeout(() => this.#sendDue(), Math.max(leastMs, dueMs - performance.now()))
  }

  /** The piece that ends at a position; undefined while the source has too little. */
  #piece(end: number): Int16Array | undefined {
    const { isOpen, source } = this.#terms
    if (source !== undefined && !source.isOver()) return source.take(this.#pieceSamples)
    const isSpeaking = this.#onSaid !== undefined
    return isSpeaking || isOpen ? this.sent(this.#position, end) : nothing
  }

  #sendDue(): void {
    while (this.timeOf(this.#position + this.#pieceSamples) <= performance.now()) {
      const end = this.#position + this.#pieceSamples
      const piece = this.#piece(end)
      this.#isLate = piece === undefined
      if (piece === undefined) break
      if (piece.length > 0) this.#terms.send(piece)
      this.#position = end
      const onSaid = this.#onSaid
      if (onSaid !== undefined && end >= this.#speech!.at + this.#speech!.samples.length) {
        this.#onSaid = undefined
        onSaid()
      }
    }
    this.#await()
  }
}

// Measures what the first audio of a stream of speech costs a model, and decides from that how many streams may begin at the same time.
// SpeechAdmission has an instance for each model. Pure except for its own counters: times are arguments.
//
// The engine computes the first pieces of all streams before any later piece, one after the other. So the cost of one beginning
// is the time in which at least one stream had no audio yet, divided by the streams that began to sound in it.

/**
 * The longest time to its first audio that an admitted stream beside others may be expected to take, milliseconds. A guess: below
 * the length of most first pieces, because the second piece of a stream waits for the first ones of all others.
 */
export const longestFirstAudioMs = 1_500

/** Speech of a first piece, milliseconds: what a beginning costs is guessed from it until one was measured. A guess. */
const firstPieceMs = 3_000

/** Weight of the newest measurement: a change is followed within some ten streams. */
const smoothing = 1 / 8

export class FirstAudioCost {
  #silent = 0
  #readAtMs = 0
  /** Time with a silent stream that no stream which began to sound has been charged with yet. */
  #unchargedMs = 0
  #costMs: number | undefined

  /** A stream begins. */
  began(nowMs: number): void {
    this.#charge(nowMs)
    this.#silent++
  }

  /** It has its first audio. */
  sounded(nowMs: number): void {
    this.#charge(nowMs)
    this.#silent--
    this.#costMs =
      this.#costMs === undefined
        ? this.#unchargedMs
        : this.#costMs + (this.#unchargedMs - this.#costMs) * smoothing
    this.#unchargedMs = 0
  }

  /** It ended without audio: refused by the engine, failed or left by its client. Says nothing about the cost. */
  gaveUp(nowMs: number): void {
    this.#charge(nowMs)
    this.#silent--
    this.#unchargedMs = 0
  }

  /**
   * Milliseconds until one more stream would have its first audio.
   * @param factor real-time factor of the model; undefined while it is not known
   */
  expectedMs(factor: number | undefined): number {
    const costMs = this.#costMs ?? (factor ?? 0) * firstPieceMs
    return (this.#silent + 1) * costMs
  }

  /** Whether one more stream would have its first audio in time. One that waits for no other always may begin. */
  admits(factor: number | undefined): boolean {
    return this.#silent === 0 || this.expectedMs(factor) <= longestFirstAudioMs
  }

  #charge(nowMs: number): void {
    if (this.#silent > 0) this.#unchargedMs += nowMs - this.#readAtMs
    this.#readAtMs = nowMs
  }
}

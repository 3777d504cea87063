// When each piece of a stream is played. The first piece waits for a short lead, so that pieces that come a little late
// still come in time. Where one comes too late all the same, there is a silence (an under-run), and the lead doubles,
// because the network has shown that the old one was too short. Pure: times go in, times come out.

/**
 * @typedef {object} PlayedPiece
 * @property {number} arrived when it came, in seconds of the player's clock
 * @property {number} start when its first sample is played; for a piece in time that is when it was due
 * @property {number} seconds its length
 * @property {number} silence seconds of silence before it, because it came too late
 */

/** Seconds from the first piece's arrival to its playback. A guess: three pieces of 20 ms. */
const firstLead = 0.06
/** The lead does not grow beyond this: a listener notices a longer wait more than a gap. A guess. */
const longestLead = 0.5

export class JitterBuffer {
  #lead
  /** Where playback began, or began again after an under-run. */
  #base = 0
  /** Samples that are scheduled since then. Whole numbers: adding seconds would lose samples to rounding. */
  #samples = 0
  /** @type {Array<PlayedPiece>} */
  pieces = []

  /**
   * @param {number} sampleRate
   * @param {number} [leadSeconds]
   */
  constructor(sampleRate, leadSeconds = firstLead) {
    this.sampleRate = sampleRate
    this.#lead = leadSeconds
  }

  /** When everything that came so far has been played. */
  get end() {
    return this.#base + this.#samples / this.sampleRate
  }

  /**
   * Seconds of the stream that have been played at a time, without the silences between.
   * @param {number} now seconds of the player's clock
   */
  playedAt(now) {
    return this.pieces.reduce(
      (sum, { seconds, start }) => sum + Math.max(0, Math.min(seconds, now - start)),
      0,
    )
  }

  get underruns() {
    return this.pieces.filter(({ silence }) => silence > 0).length
  }

  /** Seconds by which the piece that came closest to its time was early; below 0 where one was late. */
  get smallestMargin() {
    // The first piece begins playback, so it has no time of its own.
    const margins = this.pieces.slice(1).map(({ arrived, silence, start }) => start - silence - arrived)
    return margins.reduce((least, margin) => Math.min(least, margin), Number.POSITIVE_INFINITY)
  }

  /**
   * @param {number} samples
   * @param {number} now seconds of the player's clock
   * @returns {PlayedPiece}
   */
  push(samples, now) {
    const due = this.end
    const isFirst = this.pieces.length === 0
    const isLate = !isFirst && due < now
    if (isLate) this.#lead = Math.min(this.#lead * 2, longestLead)
    if (isFirst || isLate) {
      // On a whole sample of the clock, so that pieces join without a fraction between them.
      this.#base = Math.ceil((now + this.#lead) * this.sampleRate) / this.sampleRate
      this.#samples = 0
    }
    const start = this.end
    this.#samples += samples
    const piece = {
      arrived: now,
      start,
      seconds: samples / this.sampleRate,
      silence: isLate ? start - due : 0,
    }
    this.pieces.push(piece)
    return piece
  }
}

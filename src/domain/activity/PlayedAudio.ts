// The envelope of what the node sends, by the time at which it is played: what an echo in the incoming audio is compared with. Pure;
// bounded: the newest 20 s, 32 kB, allocated with the first audio.
import { BandEnergies, bandCount, hopMs, hopSamples } from "./BandEnergies.ts"

/** Bands of the comparison: pairs of the detector's. */
export const echoBands = bandCount / 2
/** Hops that are kept. Audio that is sent further ahead of its play is not kept, and its echo not recognised. */
const kept = 2_000
/** log10 power below which the played audio is silent: -60 dBFS. */
const quietest = -6
/**
 * Largest change that counts, log10 of the power: speech that begins in silence would otherwise outweigh the second after it, and any two
 * sounds that begin at about the same time would be alike.
 */
const mostChange = 0.7
/** Steps of a stored value for a factor of ten in power. */
const steps = 16

/**
 * How the loudness of 16 bands changes: what an echo and its source have in common, whatever the room and the loudness.
 * Energies as log10 of the mean power; values below `quietest` count as that.
 */
export class EnvelopeChanges {
  readonly #quietest: number
  readonly #before: [Float32Array, Float32Array]
  readonly #now = new Float32Array(echoBands)

  constructor(quietest: number) {
    this.#quietest = quietest
    const silent = () => new Float32Array(echoBands).fill(quietest)
    this.#before = [silent(), silent()]
  }

  /** log10 of the power of a band in the newest hop. */
  level(band: number): number {
    return this.#now[band]!
  }

  /** Takes the energies of a hop; writes the differences to those of two hops before. */
  push(energies: Float32Array, changes: Float32Array): void {
    const now = this.#now
    const quietest = this.#quietest
    const [first, second] = this.#before
    for (let band = 0; band < echoBands; band++) {
      const louder = Math.max(energies[2 * band]!, energies[2 * band + 1]!)
      now[band] = louder > quietest ? louder : quietest
      const change = now[band]! - first[band]!
      changes[band] = change > mostChange ? mostChange : change < -mostChange ? -mostChange : change
    }
    first.set(second)
    second.set(now)
  }
}

export class PlayedAudio {
  /** By place: changes, then levels above `quietest`. */
  #values: Int8Array | undefined
  /** The hop whose values are at a place of `values`. */
  readonly #hops = new Float64Array(kept).fill(-1)
  #bands = new BandEnergies()
  readonly #energies = new Float32Array(bandCount)
  readonly #newest = new Float32Array(echoBands)
  #envelope = new EnvelopeChanges(quietest)
  #rest = new Int16Array(0)
  /** The hop that is played next after the newest audio. */
  #next = 0
  #first = 0

  /** Whether anything is played in the hops before this one. */
  isActive(hop: number, within: number): boolean {
    return this.#values !== undefined && hop - within < this.#next && hop >= this.#first
  }

  /**
   * Audio that is played from `startMs` on.
   * @param samples s16 of 16 kHz
   * @param nowMs the present
   */
  sent(samples: Int16Array, startMs: number, nowMs: number): void {
    this.#values ??= new Int8Array(kept * 2 * echoBands)
    const start = Math.round(startMs / hopMs)
    // The clock rounds; a pause is longer.
    if (Math.abs(start - this.#next) > 3) {
      this.#bands = new BandEnergies()
      this.#envelope = new EnvelopeChanges(quietest)
      this.#rest = new Int16Array(0)
      if (start > this.#next + 100) this.#first = start
      this.#next = start
    }
    const all = new Int16Array(this.#rest.length + samples.length)
    all.set(this.#rest)
    all.set(samples, this.#rest.length)
    const last = Math.floor(nowMs / hopMs) + kept - 200
    let at = 0
    for (; at + hopSamples <= all.length; at += hopSamples) {
      this.#bands.measure(all, at, this.#energies)
      this.#envelope.push(this.#energies, this.#newest)
      if (this.#next < last) this.#keep()
      this.#next++
    }
    this.#rest = all.slice(at)
  }

  #keep(): void {
    const newest = this.#newest
    const values = this.#values
    if (values === undefined) return
    const place = this.#next % kept
    this.#hops[place] = this.#next
    for (let band = 0; band < echoBands; band++) {
      values[2 * place * echoBands + band] = stored(newest[band]!)
      values[(2 * place + 1) * echoBands + band] = stored(this.#envelope.level(band) - quietest)
    }
  }

  /** Nothing is played from now on. */
  stopped(nowMs: number): void {
    const hop = Math.ceil(nowMs / hopMs)
    for (let later = hop; later < this.#next; later++) this.#hops[later % kept] = -1
    this.#next = Math.min(this.#next, hop)
    this.#rest = new Int16Array(0)
  }

  /** Writes the changes of a hop; zeros where nothing was played. */
  changes(hop: number, out: Float32Array): void {
    this.#read(hop, 0, out)
  }

  /** Writes the levels of a hop, log10 of the power. */
  levels(hop: number, out: Float32Array): void {
    this.#read(hop, 1, out)
    for (let band = 0; band < echoBands; band++) out[band] = out[band]! + quietest
  }

  #read(hop: number, row: 0 | 1, out: Float32Array): void {
    const place = ((hop % kept) + kept) % kept
    const values = this.#values
    if (values === undefined || this.#hops[place] !== hop) return void out.fill(0)
    const at = (2 * place + row) * echoBands
    for (let band = 0; band < echoBands; band++) out[band] = values[at + band]! / steps
  }
}

const stored = (value: number): number => Math.max(-127, Math.min(127, Math.round(value * steps)))

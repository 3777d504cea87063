// Tells whether what comes in is an echo of what the node sent. How the loudness of 16 bands changes is correlated with the changes
// of the played audio at every delay up to 0.8 s: an echo follows the played audio, a user who speaks at the same time does not.
// Once the delay is known, how loud the echo is in each band is learnt too, and only what is louder than that is the user. Pure; a
// fixed amount of memory and work a hop.
import { hopMs } from "./BandEnergies.ts"
import { EnvelopeChanges, echoBands, type PlayedAudio } from "./PlayedAudio.ts"

/** Delays that are tried, in hops: the network both ways, the client's buffer and the room. */
const delays = 80
// The following were chosen with `npm run bench -- turns`, other seeds.
/** The audio of about this many hops decides: 120 ms. */
const fast = 1 - 1 / 12
/** The delay is known from about this many hops: 1.5 s. */
const slow = 1 - 1 / 150
/** Correlation of an echo at some delay, and at the one that is known. */
const echoAnywhere = 0.7
const echoAtDelay = 0.45
/** Correlation over the seconds before from which a delay is known. */
const delayKnown = 0.35
/** How fast a room falls silent, in log10 of the power a hop: 60 dB in 0.5 s. */
const decay = 0.12
/** How much each hop of echo changes what is known of its loudness. */
const learning = 0.06
/** Hops of echo after which its loudness is known. */
const enough = 12
/** A band is louder than the echo by this much, log10 of the power: 6 dB. */
const margin = 0.6
/** So many louder bands are the user. */
const userBands = 5
/** Bands below -75 dBFS say nothing. */
const quietest = -7.5

export class EchoDetector {
  readonly #played: PlayedAudio
  readonly #envelope = new EnvelopeChanges(quietest)
  readonly #near = new Float32Array(echoBands)
  readonly #far = new Float32Array(echoBands)
  /** By delay: running sums of the products, and of the squares of the played changes; the newest, and those of some seconds. */
  readonly #cross = new Float32Array(delays)
  readonly #power = new Float32Array(delays)
  readonly #slowCross = new Float32Array(delays)
  readonly #slowPower = new Float32Array(delays)
  #nearPower = 0
  #slowNear = 0
  /** What is played with the room's decay, at the known delay; and how much louder the echo is, by band. */
  readonly #reverberant = new Float32Array(echoBands).fill(quietest)
  readonly #gains = new Float32Array(echoBands)
  #learnt = 0
  #delay: number | undefined
  /** Correlation of the newest audio at the known delay. */
  #atDelay = 0
  #echo = false

  constructor(played: PlayedAudio) {
    this.#played = played
  }

  /** Whether the newest audio is an echo, as far as one can tell. */
  get isEcho(): boolean {
    return this.#echo
  }

  /** Takes the energies of the incoming hop that ended at this time. */
  hear(energies: Float32Array, endMs: number): void {
    const hop = Math.floor(endMs / hopMs)
    this.#envelope.push(energies, this.#near)
    if (!this.#played.isActive(hop, delays + 30)) {
      this.#echo = false
      return
    }
    const best = this.#correlate(hop)
    if (this.#delay === undefined) {
      this.#echo = best > echoAnywhere
      return
    }
    this.#predict(hop - this.#delay)
    const isSimilar = this.#atDelay > echoAtDelay || best > echoAnywhere
    if (isSimilar) this.#learn()
    this.#echo = isSimilar || (this.#learnt >= enough && this.#louderBands() < userBands)
  }

  /** The highest correlation at any delay; finds the delay of the last seconds. */
  #correlate(hop: number): number {
    const near = this.#near
    const far = this.#far
    let power = 0
    for (let band = 0; band < echoBands; band++) power += near[band]! * near[band]!
    this.#nearPower = this.#nearPower * fast + power
    this.#slowNear = this.#slowNear * slow + power
    let [best, known, knownAt] = [0, 0, 0]
    for (let delay = 0; delay < delays; delay++) {
      this.#played.changes(hop - delay, far)
      let [cross, square] = [0, 0]
      for (let band = 0; band < echoBands; band++) {
        cross += near[band]! * far[band]!
        square += far[band]! * far[band]!
      }
      this.#cross[delay] = this.#cross[delay]! * fast + cross
      this.#power[delay] = this.#power[delay]! * fast + square
      this.#slowCross[delay] = this.#slowCross[delay]! * slow + cross
      this.#slowPower[delay] = this.#slowPower[delay]! * slow + square
      const value = this.#cross[delay]! / Math.sqrt(this.#power[delay]! * this.#nearPower + 1e-2)
      const slowValue = this.#slowCross[delay]! / Math.sqrt(this.#slowPower[delay]! * this.#slowNear + 1)
      if (value > best) best = value
      if (slowValue > known) [known, knownAt] = [slowValue, delay]
    }
    if (known > delayKnown && knownAt !== this.#delay) {
      // Another delay: the client has paused, or its buffer has grown.
      if (this.#delay !== undefined && Math.abs(knownAt - this.#delay) > 2) this.#learnt = 0
      this.#delay = knownAt
    }
    if (this.#delay !== undefined) {
      this.#atDelay =
        this.#cross[this.#delay]! / Math.sqrt(this.#power[this.#delay]! * this.#nearPower + 1e-2)
    }
    return best
  }

  #predict(hop: number): void {
    this.#played.levels(hop, this.#far)
    for (let band = 0; band < echoBands; band++) {
      this.#reverberant[band] = Math.max(this.#far[band]!, this.#reverberant[band]! - decay, quietest)
    }
  }

  #learn(): void {
    const share = Math.max(learning, 1 / (this.#learnt + 1))
    for (let band = 0; band < echoBands; band++) {
      const gain = this.#envelope.level(band) - this.#reverberant[band]!
      this.#gains[band] = this.#gains[band]! + share * (gain - this.#gains[band]!)
    }
    this.#learnt = Math.min(this.#learnt + 1, 1_000)
  }

  #louderBands(): number {
    let count = 0
    for (let band = 0; band < echoBands; band++) {
      const expected = Math.max(this.#reverberant[band]! + this.#gains[band]!, quietest)
      if (this.#envelope.level(band) > expected + margin) count++
    }
    return count
  }
}

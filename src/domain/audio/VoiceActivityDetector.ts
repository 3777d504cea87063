// Detects the start and the end of speech: a small trained network gives each 10 ms a probability of speech, and this
// file turns probabilities into events. Where a detection model gives the probabilities (`SpeechScores`), the network does not run. Pure; one
// value for each stream of audio.
//
// All times are milliseconds of audio. The probability of a hop is known one hop later, because a measurement is centred on the
// hop before the newest.
import { BandEnergies, bandCount, hopMs, hopSamples } from "../activity/BandEnergies.ts"
import { SpeechNetwork, type SpeechWeights } from "../activity/SpeechNetwork.ts"

export interface SpeechEvent {
  readonly type: "started" | "stopped"
  /** Position in the audio. */
  readonly audioMs: number
}

export interface SpeechRules {
  /** Silence after which speech has ended. */
  readonly silenceMs: number
  /** Probability of a hop that counts as speech, 0 to 1. */
  readonly threshold: number
}

export const defaultRules: SpeechRules = { silenceMs: 500, threshold: 0.5 }

/** Probabilities of speech that a detection model gives (engines/detection), in steps that are longer than hops. */
export interface SpeechScores {
  /** Of the hop of this number, from 0; undefined: the model gives none any more. Called once for each hop, in their order. */
  readonly at: (hop: number) => number | undefined
}

/** What else is known of the audio: an echo is speech that the node itself sent. */
export interface SpeechDoubt {
  /** The newest hop's energies. */
  readonly hear: (energies: Float32Array) => void
  /** Whether the newest audio is no speech of the user, however it sounds. */
  readonly isEcho: boolean
}

/** Speech begins when this many of the newest hops are speech. Measured: `npm run bench -- turns`. */
const onsetHops = 6
const onsetWindow = 8
/** Speech that was doubted for so long belongs to the turn, hops: 0.6 s. A guess: an echo is known by then. */
const doubtedHops = 60
/** Hops between the first of speech and its event, at most. */
export const onsetLagHops = doubtedHops + onsetWindow + 1
/** Speech goes on while a hop's probability is over this share of the threshold: ends of words are faint. A guess. */
const holdShare = 0.6
/** The same for a model's probabilities: so much below the threshold, and this at least. As Silero's published code has it. */
const modelHold = 0.15
const modelLowest = 0.01
/** Consecutive hops that count as speech after a pause: one alone is a click. */
const resumeHops = 2
/**
 * Hops by which the last one that counts as speech lies behind the last sample of speech: it still hears the end of the word. Measured by
 * `npm run bench -- turns`: 14 ms for clean speech, more in noise.
 */
const lateHops = 1
/** At threshold 0 everything would be speech, and no turn end. At 1 nothing is. */
const lowest = 0.02

export class VoiceActivityDetector {
  readonly #silenceMs: number
  readonly #threshold: number
  readonly #weights: SpeechWeights
  /** Absent while a model gives the probabilities. */
  #network: SpeechNetwork | undefined
  readonly #scores: SpeechScores | undefined
  readonly #doubt: SpeechDoubt | undefined
  readonly #bands = new BandEnergies()
  readonly #energies = new Float32Array(bandCount)
  readonly #rest = new Int16Array(hopSamples)
  #restLength = 0
  /** Hops so far, of which the newest is not judged yet. */
  #hops = 0
  /** A bit for each of the newest judged hops, the newest lowest: whether it was speech. */
  #recent = 0
  /** Hops until the last one that counted as speech, with it. */
  #speechEnd = 0
  /** Where the speech began that may be an echo. */
  #doubtedFrom: number | undefined
  #speaking = false
  #newest = 0
  /** Silence that ends the speech that goes on. */
  #endsAt: number

  /** `scores`: of a detection model, if one listens. Without them, and once they end, the network of these weights does. */
  constructor(
    weights: SpeechWeights,
    rules: SpeechRules = defaultRules,
    doubt?: SpeechDoubt,
    scores?: SpeechScores,
  ) {
    this.#silenceMs = rules.silenceMs
    this.#endsAt = rules.silenceMs
    this.#threshold = Math.max(lowest, rules.threshold)
    this.#weights = weights
    this.#scores = scores
    this.#doubt = doubt
  }

  get isSpeaking(): boolean {
    return this.#speaking
  }

  /** Probability of speech in the last judged hop. */
  get probability(): number {
    return this.#newest
  }

  /** Length of the silence with which the audio so far ends, milliseconds. */
  get quietMs(): number {
    return (this.quietHops + lateHops) * hopMs
  }

  /** Hops since the last one that counted as speech. */
  get quietHops(): number {
    return this.#hops - this.#speechEnd
  }

  /** Silence with which the present speech ends, milliseconds. */
  get endsAtMs(): number {
    return this.#endsAt
  }

  /** The present silence ends the speech when it is this long; once speech goes on, or begins again, the usual length counts. */
  setSilence(silenceMs: number): void {
    this.#endsAt = silenceMs
  }

  /** Takes the next samples, s16 of 16 kHz, any number. */
  push(samples: Int16Array): ReadonlyArray<SpeechEvent> {
    const events: Array<SpeechEvent> = []
    const take = (from: Int16Array, at: number) => {
      const event = this.#hop(from, at)
      if (event !== undefined) events.push(event)
    }
    let at = 0
    if (this.#restLength > 0) {
      at = Math.min(hopSamples - this.#restLength, samples.length)
      this.#rest.set(samples.subarray(0, at), this.#restLength)
      this.#restLength += at
      if (this.#restLength < hopSamples) return events
      take(this.#rest, 0)
      this.#restLength = 0
    }
    for (; at + hopSamples <= samples.length; at += hopSamples) take(samples, at)
    this.#rest.set(samples.subarray(at))
    this.#restLength = samples.length - at
    return events
  }

  #hop(samples: Int16Array, at: number): SpeechEvent | undefined {
    const given = this.#scores?.at(this.#hops - 1)
    if (given === undefined || this.#doubt !== undefined) this.#bands.measure(samples, at, this.#energies)
    this.#newest = given ?? this.#judged()
    this.#doubt?.hear(this.#energies)
    this.#hops++
    const held =
      given === undefined ? this.#threshold * holdShare : Math.max(this.#threshold - modelHold, modelLowest)
    const needed = this.#speaking ? held : this.#threshold
    this.#recent = ((this.#recent << 1) | (this.#newest > needed ? 1 : 0)) & ((1 << onsetWindow) - 1)
    if (this.#speaking) return this.#during()
    if (countOf(this.#recent) < onsetHops) {
      this.#doubtedFrom = undefined
      return undefined
    }
    const first = this.#hops - 1 - (31 - Math.clz32(this.#recent))
    this.#doubtedFrom ??= first
    if (this.#doubt?.isEcho === true) return undefined
    this.#speaking = true
    this.#speechEnd = this.#hops - 1
    const from = Math.max(this.#doubtedFrom, first - doubtedHops)
    this.#doubtedFrom = undefined
    return { type: "started", audioMs: Math.max(0, from - 1) * hopMs }
  }

  /** The network's probability. It begins with silence: a hundred milliseconds later it knows the room again. */
  #judged(): number {
    this.#network ??= new SpeechNetwork(this.#weights)
    return this.#network.step(this.#energies)
  }

  #during(): SpeechEvent | undefined {
    const resumed = (1 << resumeHops) - 1
    if ((this.#recent & resumed) === resumed && this.#doubt?.isEcho !== true) {
      this.#speechEnd = this.#hops - 1
      this.#endsAt = this.#silenceMs
    }
    // While speech goes on, the newest hop is the only one that is not judged.
    if (this.quietHops === 1 || this.quietMs < this.#endsAt) return undefined
    this.#speaking = false
    this.#endsAt = this.#silenceMs
    this.#recent = 0
    return { type: "stopped", audioMs: (this.#speechEnd - lateHops) * hopMs }
  }
}

const countOf = (bits: number): number => {
  let count = 0
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++
  return count
}

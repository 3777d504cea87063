// Splits audio into speakers' turns: a turn begins with a little audio from before the speech, and a silence ends it.
// Pure except for the audio that it holds back. 16 kHz s16.
import { hopSamples } from "../activity/BandEnergies.ts"
import { Prosody } from "../activity/Prosody.ts"
import type { SpeechWeights } from "../activity/SpeechNetwork.ts"
import { listenRateHz, samplesToMs } from "./Audio.ts"
import { NewestSamples } from "./NewestSamples.ts"
import type { StepScores } from "./StepScores.ts"
import {
  onsetLagHops,
  type SpeechDoubt,
  type SpeechRules,
  VoiceActivityDetector,
} from "./VoiceActivityDetector.ts"

/** `audioMs`: position of the turn's first sample, and behind its last one: OpenAI's `audio_start_ms` and `audio_end_ms`. */
export type TurnStep =
  | { readonly step: "started"; readonly audioMs: number; readonly samples: Int16Array }
  | { readonly step: "samples"; readonly samples: Int16Array }
  | { readonly step: "ended"; readonly audioMs: number; readonly quietMs: number }

/** A silence within a turn. */
export interface Pause {
  /** How long it has lasted, milliseconds. 0: there is none. */
  readonly quietMs: number
  /** The length with which it ends the turn. */
  readonly endsAtMs: number
}

/** How speech is told from silence, and how much audio before it belongs to a turn. */
export interface TurnRules extends SpeechRules {
  readonly prefixMs: number
  /** Whether the length of the silence that ends a turn depends on how its speech ends. */
  readonly judges?: boolean
}

/**
 * How much earlier a hop of the detector ends than a client's piece of 10, 20, … ms does: more than the filter that brings the audio to
 * 16 kHz keeps back (18 samples from 24 kHz, 36 from 8 kHz). Otherwise each hop would wait for a few samples of the next piece, up to
 * 20 ms. Whole milliseconds, so that positions are.
 */
const aheadSamples = 48

/** The newest hop is not judged yet, and one hop without speech is within a word. */
const unsureHops = 2

export class TurnDetector {
  readonly #detector: VoiceActivityDetector
  readonly #prosody: Prosody | undefined
  /** The newest silence: the audio that a turn starts with, before its speech. */
  readonly #held: NewestSamples
  readonly #prefixSamples: number
  /** Samples before the first one that this detector gets. */
  readonly #startsAt: number
  /** Silence that the detector is given before that one. */
  readonly #ahead: number
  /** Samples so far, with those. */
  #total: number
  /** Hops so far. */
  #hops = 0
  /** Of a detection model: audio waits in `#rest` until they are known. */
  readonly #scores: StepScores | undefined
  #rest = new Int16Array(0)
  #speaking = false

  /**
   * `startsAt`: position in the audio of the first sample that it gets. `scores`: of a detection model, for the stream that begins with
   * `aheadSamples` of silence.
   */
  constructor(
    weights: SpeechWeights,
    rules: TurnRules,
    startsAt = 0,
    doubt?: SpeechDoubt,
    scores?: StepScores,
  ) {
    this.#startsAt = startsAt
    this.#ahead = aheadSamples + (startsAt % (listenRateHz / 1000))
    this.#total = startsAt - this.#ahead
    this.#rest = new Int16Array(this.#ahead)
    this.#prosody = rules.judges === true ? new Prosody() : undefined
    this.#scores = scores
    this.#detector = new VoiceActivityDetector(weights, rules, doubt, scores)
    this.#prefixSamples = Math.ceil((rules.prefixMs * listenRateHz) / 1000)
    // Speech is detected some hops after it began, with the hop that is taken then.
    this.#held = new NewestSamples(this.#prefixSamples + (onsetLagHops + 1) * hopSamples)
  }

  /** Samples of silence that its stream has before the audio. */
  get aheadSamples(): number {
    return this.#ahead
  }

  /** Whether a turn is open. */
  get isOpen(): boolean {
    return this.#speaking
  }

  /** The silence with which the open turn ends so far; undefined where no turn is open. */
  get pause(): Pause | undefined {
    if (!this.#speaking) return undefined
    const { endsAtMs, quietHops, quietMs } = this.#detector
    return { quietMs: quietHops > unsureHops ? quietMs : 0, endsAtMs }
  }

  /** How the speech before the present silence sounds at its end (Prosody); undefined where there is no silence, or nothing judges it. */
  get ending(): Float32Array | undefined {
    return this.pause === undefined || this.pause.quietMs === 0
      ? undefined
      : this.#prosody?.ending(this.#detector.quietHops)
  }

  /** The present silence ends the turn when it is this long. The next silence has the usual length again. */
  setSilence(silenceMs: number): void {
    if (this.#speaking) this.#detector.setSilence(silenceMs)
  }

  push(samples: Int16Array): ReadonlyArray<TurnStep> {
    const all = joined(this.#rest, samples)
    const steps: Array<TurnStep> = []
    let at = 0
    for (; at + hopSamples <= all.length; at += hopSamples) {
      // A hop is judged with the one behind it.
      if (this.#scores?.knows(this.#hops - 1) === false) break
      const hop = all.subarray(at, at + hopSamples)
      this.#hops++
      this.#total += hopSamples
      this.#prosody?.push(hop)
      const [event] = this.#detector.push(hop)
      if (!this.#speaking) this.#held.push(hop)
      if (event?.type === "started") {
        this.#speaking = true
        const at = this.#startsAt - this.#ahead + (event.audioMs * listenRateHz) / 1000
        const from = Math.max(this.#startsAt, at - this.#prefixSamples)
        const turn = this.#held.newest(this.#total - from)
        const audioMs = samplesToMs(this.#total - turn.length, listenRateHz)
        steps.push({ step: "started", audioMs, samples: turn })
        this.#held.clear()
        continue
      }
      if (this.#speaking) steps.push({ step: "samples", samples: hop })
      if (event?.type === "stopped") {
        this.#speaking = false
        const audioMs = samplesToMs(this.#total, listenRateHz)
        steps.push({ step: "ended", audioMs, quietMs: this.#detector.quietMs })
      }
    }
    this.#rest = all.slice(at)
    return steps
  }
}

const joined = (first: Int16Array, second: Int16Array): Int16Array<ArrayBuffer> => {
  const all = new Int16Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

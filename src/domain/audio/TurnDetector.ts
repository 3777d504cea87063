// Splits audio into speakers' turns: a turn begins with a little audio from before the speech, and a silence ends it.
// Pure except for the audio that it holds back. 16 kHz s16.
import { LISTEN_RATE_HZ, samplesToMs } from "./Audio.ts"
import { ONSET_FRAMES, VoiceActivityDetector } from "./VoiceActivityDetector.ts"

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

/** The detector's frame. */
const sliceSamples = LISTEN_RATE_HZ / 50

export class TurnDetector {
  private readonly detector: VoiceActivityDetector
  private readonly silenceMs: number
  /** Length of the newest silence that is kept: the audio that a turn starts with, before its speech. */
  private readonly heldSamples: number
  private held = new Int16Array(0)
  private rest = new Int16Array(0)
  private speaking = false
  /** Whole frames so far. */
  private frames = 0

  constructor(silenceMs: number, prefixMs: number) {
    this.silenceMs = silenceMs
    this.detector = new VoiceActivityDetector(LISTEN_RATE_HZ, { silenceMs })
    // Speech is detected some frames after it began.
    this.heldSamples = Math.ceil((prefixMs * LISTEN_RATE_HZ) / 1000) + (ONSET_FRAMES - 1) * sliceSamples
  }

  /** The silence with which the open turn ends so far; undefined where no turn is open. */
  get pause(): Pause | undefined {
    return this.speaking ? { quietMs: this.detector.quietMs, endsAtMs: this.silenceMs } : undefined
  }

  push(samples: Int16Array): ReadonlyArray<TurnStep> {
    const all = joined(this.rest, samples)
    const steps: Array<TurnStep> = []
    let at = 0
    for (; at + sliceSamples <= all.length; at += sliceSamples) {
      const slice = all.slice(at, at + sliceSamples)
      const [event] = this.detector.push(slice)
      this.frames++
      const endsAt = this.frames * sliceSamples
      if (event?.type === "started") {
        this.speaking = true
        const turn = joined(this.held, slice)
        const audioMs = samplesToMs(endsAt - turn.length, LISTEN_RATE_HZ)
        steps.push({ step: "started", audioMs, samples: turn })
        this.held = new Int16Array(0)
        continue
      }
      if (this.speaking) steps.push({ step: "samples", samples: slice })
      else this.held = joined(this.held, slice).slice(-this.heldSamples)
      if (event?.type === "stopped") {
        this.speaking = false
        const audioMs = samplesToMs(endsAt, LISTEN_RATE_HZ)
        steps.push({ step: "ended", audioMs, quietMs: this.detector.quietMs })
      }
    }
    this.rest = all.slice(at)
    return steps
  }
}

const joined = (first: Int16Array, second: Int16Array): Int16Array<ArrayBuffer> => {
  const all = new Int16Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

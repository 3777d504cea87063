// Detects speech as sound that is louder than the background. Pure. It measures energy, not voices: music and slamming
// doors count as speech.
//
// All times are milliseconds of audio. The numbers are guesses from how people speak (a syllable is 100 to 200 ms, a
// pause inside a sentence up to 400 ms), tried on the built-in recogniser's evaluation clips, with and without noise.

export interface SpeechEvent {
  readonly type: "started" | "stopped"
  /** Position in the audio. */
  readonly audioMs: number
}

export interface SpeechRules {
  /** Silence after which speech has ended. */
  readonly silenceMs: number
}

export const defaultRules: SpeechRules = { silenceMs: 500 }

const FRAME_MS = 20
/** Consecutive loud frames that count as speech; fewer are a click. */
export const ONSET_FRAMES = 3
/** Loud means 10 dB over the background: ten times its power. */
const OVER_BACKGROUND = 10
/** Nothing below -50 dBFS counts as speech, however quiet the background. Power of samples in [-1, 1]. */
const QUIETEST = 1e-5
/** The background estimate may rise by 0.5 % per frame: a fan that starts is background after ten seconds. */
const RISE = 1.005
const LOUDEST_BACKGROUND = 1e-2

export class VoiceActivityDetector {
  private readonly rules: SpeechRules
  private readonly frameSamples: number
  private sum = 0
  private count = 0
  private frames = 0
  private background = LOUDEST_BACKGROUND
  private loud = 0
  private quiet = 0
  private speaking = false

  constructor(rateHz: number, rules: SpeechRules = defaultRules) {
    this.rules = rules
    this.frameSamples = (rateHz * FRAME_MS) / 1000
  }

  get isSpeaking(): boolean {
    return this.speaking
  }

  /** Length of the silence with which the audio so far ends, milliseconds. */
  get quietMs(): number {
    return this.quiet * FRAME_MS
  }

  /** Takes the next samples, s16, any number. */
  push(samples: Int16Array): ReadonlyArray<SpeechEvent> {
    const events: Array<SpeechEvent> = []
    for (let i = 0; i < samples.length; i++) {
      const sample = samples[i]!
      this.sum += sample * sample
      if (++this.count < this.frameSamples) continue
      const event = this.frame(this.sum / this.count / 2 ** 30)
      if (event !== undefined) events.push(event)
      this.sum = 0
      this.count = 0
    }
    return events
  }

  private frame(power: number): SpeechEvent | undefined {
    this.frames++
    this.background = Math.min(Math.max(power, 1e-9), this.background * RISE, LOUDEST_BACKGROUND)
    const isLoud = power > Math.max(QUIETEST, this.background * OVER_BACKGROUND)
    this.loud = isLoud ? this.loud + 1 : 0
    this.quiet = isLoud ? 0 : this.quiet + 1
    if (!this.speaking && this.loud >= ONSET_FRAMES) {
      this.speaking = true
      return { type: "started", audioMs: (this.frames - this.loud) * FRAME_MS }
    }
    if (this.speaking && this.quiet * FRAME_MS >= this.rules.silenceMs) {
      this.speaking = false
      return { type: "stopped", audioMs: (this.frames - this.quiet) * FRAME_MS }
    }
    return undefined
  }
}

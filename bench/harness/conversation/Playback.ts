// The loudspeaker of a client: audio is played when it arrives, or after what arrived before it. Pure.
import type { Delivered } from "../figures/VirtualPlayer.ts"

/** −40 dBFS: quieter samples count as silence, as in other requests for speech. */
const soundLevel = 32_768 / 100

export const isAudible = (sample: number): boolean => Math.abs(sample) > soundLevel

/** The audio of one answer. */
export class AnswerAudio {
  readonly deliveries: Array<Delivered> = []
  /** When its first audible sample is played. */
  soundAtMs: number | undefined
  audioMs = 0

  get lastArrivedMs(): number | undefined {
    return this.deliveries.at(-1)?.atMs
  }
}

export class Playback {
  readonly #rateHz: number
  /** Until when everything that arrived is played. */
  #endsAtMs = Number.NEGATIVE_INFINITY
  /** The server has said that it is playing: more follows, however short a time what has arrived lasts. */
  isContinued = false

  constructor(rateHz: number) {
    this.#rateHz = rateHz
  }

  get endsAtMs(): number {
    return this.#endsAtMs
  }

  isPlaying(nowMs: number): boolean {
    return this.isContinued || this.#endsAtMs > nowMs
  }

  arrived(answer: AnswerAudio, samples: Int16Array, atMs: number): void {
    const fromMs = Math.max(atMs, this.#endsAtMs)
    if (answer.soundAtMs === undefined) {
      const at = samples.findIndex(isAudible)
      if (at >= 0) answer.soundAtMs = fromMs + (at * 1000) / this.#rateHz
    }
    const lengthMs = (samples.length * 1000) / this.#rateHz
    this.#endsAtMs = fromMs + lengthMs
    answer.audioMs += lengthMs
    answer.deliveries.push({ atMs, audioMs: answer.audioMs })
  }

  /** Audio of the newest answer that has been played, milliseconds. */
  playedMs(answer: AnswerAudio, nowMs: number): number {
    return Math.max(0, answer.audioMs - Math.max(0, this.#endsAtMs - nowMs))
  }

  /** Throws away what has not been played. */
  stop(nowMs: number): void {
    this.#endsAtMs = Math.min(this.#endsAtMs, nowMs)
  }
}

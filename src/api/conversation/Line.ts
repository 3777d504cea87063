// How a conversation reaches its client: a WebSocket, whose events hold the audio, or a call, whose audio comes and goes beside the events.
import type { Reader, Writer } from "effect/socket/Socket"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"

/** Audio beside the events. What the client says arrives at the reader as `AudioFrame`. */
export interface LineSound {
  /** Hz, of the frames that arrive. */
  readonly rateHz: number
  /** Plays speech (24 kHz) after what was sent before. */
  readonly play: (samples: Int16Array) => void
  /** Plays nothing more of what was sent. */
  readonly flush: () => void
  /** From the sending of audio until it is heard, milliseconds. */
  readonly delayMs: () => number
  /** For lines that are told what was played: they tell the clock. */
  readonly follow?: (clock: PlayClock) => void
}

export interface Line {
  readonly reader: Reader
  readonly writer: Writer
  /** Undefined: audio is in the events, as base64. */
  readonly sound: LineSound | undefined
}

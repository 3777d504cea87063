// How a conversation of the harness travels: a WebSocket, whose events hold the audio, or a WebRTC call, whose audio goes beside the events.
import type { RequestFailed } from "../client/Failures.ts"

export const transportNames = ["websocket", "webrtc"] as const
export type TransportName = (typeof transportNames)[number]

export interface TransportListener {
  /** The text of an event, when it came; undefined for a frame that is none. */
  readonly event: (text: string | undefined, atMs: number) => void
  /** Audio beside the events, s16 of 24 kHz: speech, and silence without end. */
  readonly sound: (samples: Int16Array, atMs: number) => void
  readonly ended: (failure: RequestFailed) => void
}

export interface Transport {
  readonly send: (event: object) => void
  /** Audio of the microphone, s16 of 24 kHz, just spoken. */
  readonly say: (samples: Int16Array) => void
  /** Bytes that wait to be sent. */
  readonly waitingBytes: () => number
  readonly close: () => void
}

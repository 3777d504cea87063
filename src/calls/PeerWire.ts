// Messages between the gateway and the process of calls. A call is named by a number that the gateway gives. Audio is s16 of 24 kHz, mono.

/** Bytes of a message of the data channel, in both directions: more than any session or event that is not audio. */
export const maxMessageBytes = 1_000_000

/** Bytes of a caller's messages that the gateway has not handled yet. Beyond it the call ends. A guess: ten of the largest session updates. */
export const mostUnreadBytes = 1_048_576

/** Messages of a caller that the gateway has not handled yet. Beyond it the call ends: 20 s of the allowance of EventReader. */
export const mostUnreadMessages = 1_500

/** What the process of calls is started with. */
export interface PeerTerms {
  readonly port: number
  /** The address that the UDP socket is bound to; undefined: all. */
  readonly bindAddress: string | undefined
  /** Addresses that answers announce. */
  readonly addresses: ReadonlyArray<string>
}

/**
 * Why a call has ended. `left`: the caller closed it, or was not reachable for 26 s. `failed`: it could not be connected, for example because
 * its certificate is not the one of its offer. `too fast`: its messages came faster than they were handled. `too slow`: it did not take in its events.
 * `process`: the process of calls has ended.
 */
export type PeerEnd = "left" | "failed" | "too fast" | "too slow" | "process"

export interface PeerQuality {
  /** Milliseconds to the caller and back; undefined before the first report. */
  readonly roundTripMs: number | undefined
  /** How much the distance of packets varies at the caller, milliseconds. */
  readonly jitterMs: number
  /** Share of this node's packets that the caller has lost lately. */
  readonly lost: number
  /** Packets of the caller, and those that were lost or too late. */
  readonly received: number
  readonly missing: number
}

export type ToPeers =
  | {
      readonly t: "offer"
      readonly id: number
      readonly sdp: string
      readonly payloadType: number
      readonly ssrc: number | undefined
    }
  | { readonly t: "event"; readonly id: number; readonly text: string }
  /** To be played after what was sent before. */
  | { readonly t: "speech"; readonly id: number; readonly samples: Int16Array }
  /** What was sent and not played yet is dropped. */
  | { readonly t: "flush"; readonly id: number }
  /** The gateway has handled messages of the caller. */
  | { readonly t: "taken"; readonly id: number; readonly messages: number; readonly bytes: number }
  | { readonly t: "close"; readonly id: number }

export type FromPeers =
  | { readonly t: "up" }
  | { readonly t: "answer"; readonly id: number; readonly sdp: string }
  | { readonly t: "refused"; readonly id: number; readonly problem: string }
  /** The data channel is open. */
  | { readonly t: "open"; readonly id: number }
  | { readonly t: "event"; readonly id: number; readonly text: string }
  | { readonly t: "heard"; readonly id: number; readonly samples: Int16Array }
  | { readonly t: "quality"; readonly id: number; readonly quality: PeerQuality }
  | { readonly t: "ended"; readonly id: number; readonly why: PeerEnd }

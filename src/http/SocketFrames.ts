// Messages of a WebSocket that are too large to be handed over as a text: what a listener gives its handlers besides texts and bytes.
import { Context } from "effect"

/** A large text message, as UTF-8. Its handler reads it in slices: decoding it in one go would hold the event loop. */
export class TextFrame extends Uint8Array {}

/** What is left of a text message that is larger than its socket takes: its first bytes, and its last ones. */
export class CutFrame extends TextFrame {}

/** Audio that came beside the texts, as the samples of a call do: s16 in the byte order of this machine. Made of an `Int16Array`. */
export class AudioFrame extends Uint8Array {
  get samples(): Int16Array {
    return new Int16Array(this.buffer, this.byteOffset, this.length / 2)
  }
}

export const audioFrame = ({ buffer, byteLength, byteOffset }: Int16Array): AudioFrame =>
  new AudioFrame(buffer as ArrayBuffer, byteOffset, byteLength)

/** How large messages of a socket may be. */
export interface MessageSize {
  readonly mostBytes: number
  /** The handler gets a `CutFrame` of a larger text message, and the socket goes on; otherwise it closes with 1009. */
  readonly cuts: boolean
}

/** Of the socket that is opened with it; absent: the listener's own limit. */
export const SocketMessageSize = Context.Reference<MessageSize | undefined>(
  "edgewise/http/SocketMessageSize",
  {
    defaultValue: () => undefined,
  },
)

/** Whose a socket is. */
export interface SocketOwner {
  /** Of a user, or of a client secret. Large messages that wait are counted together with those of its other sockets. */
  readonly id: string
  /** Called with the bytes of messages that came and that no handler reads: those that wait when the handler ends, and one that is too much. */
  readonly dropped: (bytes: number) => void
}

/** Of the socket that is opened with it; absent: each socket is counted alone. */
export const CurrentSocketOwner = Context.Reference<SocketOwner | undefined>("edgewise/http/SocketOwner", {
  defaultValue: () => undefined,
})

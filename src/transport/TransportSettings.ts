// Every limit and deadline of a listener, with its default and the origin of that default. Production uses the
// defaults; tests set short deadlines.
import { tmpdir } from "node:os"

export interface TransportSettings {
  /** Open connections, WebSockets not counted. Further ones are closed at once. */
  readonly maxConnections: number
  /** True if chunked bodies are allowed, whose framing uWS parses too leniently. If false they are answered 411. */
  readonly chunkedBodies: boolean
  /** Bytes of a request head: method, target, names and values of all headers. Larger ones are answered 431. */
  readonly headBytes: number
  /**
   * Bytes of a request body if the handler sets no `MaxBodySize`. Larger ones are answered 413, and the connection is
   * not read further.
   */
  readonly bodyBytes: number
  /** Bodies up to this size are collected first, so that the handler runs to its end inside one uWS callback. */
  readonly eagerBodyBytes: number
  /** Unread body bytes at which the connection is paused. uWS may still deliver the rest of its current read. */
  readonly bodyBufferBytes: number
  /**
   * Unread body bytes in memory beyond which a body that arrives in spite of the pause goes to a temporary file. For a
   * body of a declared length up to `bodyBytes` the limit is `bodyBytes`.
   */
  readonly bodyBurstBytes: number
  /** Folder of that file. Its name is removed at once, so the file disappears when it is closed. */
  readonly spillFolder: string
  /**
   * A body that its handler has not read for this long is given up: a paused connection does not show whether its
   * client has left.
   */
  readonly bodyPauseTimeoutMs: number
  /** A body that the handler wants to read and that does not arrive for this long is answered 408. */
  readonly bodyStallTimeoutMs: number
  /** From this age on, a body slower than `bodyBytesPerSecond` on average is answered 408. */
  readonly bodyGraceMs: number
  readonly bodyBytesPerSecond: number
  /**
   * Bytes of its body that an answered request may still send; they are discarded. Beyond it the connection is closed.
   */
  readonly discardBytes: number
  /** Bytes of a response buffered for one reader. Beyond it the connection is closed. */
  readonly readerBufferBytes: number
  /** A reader that takes nothing for this long while data is buffered for it is disconnected. */
  readonly stallTimeoutMs: number
  /** Time for which a refused connection stays open, unread, so that the response arrives. */
  readonly lingerMs: number
  /** Longest WebSocket message, where a socket's handler sets no other limit (SocketMessageSize). A longer one closes it with 1009. */
  readonly frameBytes: number
  /** Longest WebSocket message of any socket that is read to its end, so that it can be answered or the socket closed in order. */
  readonly discardedFrameBytes: number
  /** Unread bytes of messages at which a WebSocket is paused, and how many its handler takes at a time. */
  readonly inboundPauseBytes: number
  /** Unread bytes of messages of one WebSocket, which uWS cannot pause. More close it with 1009. */
  readonly inboundBytes: number
  /**
   * The same of all WebSockets of a listener: none may have more than half of what is left, except a message that its reader waits for. Of
   * messages over `inboundPauseBytes` this holds for all sockets of a user together.
   */
  readonly unreadBytes: number
  /** Unsent bytes of one WebSocket at which its writer waits. */
  readonly outboundBytes: number
  /** A WebSocket that answers no ping for this long is closed. 0, or 8 to 960 in steps of 4 (uWS's granularity). */
  readonly webSocketIdleSeconds: number
}

export const defaultSettings: TransportSettings = {
  // A guess: 64 KB of head each are 512 MB at worst.
  maxConnections: 8_192,
  chunkedBodies: true,
  // A guess: a bearer token of a few KB and large cookies are a fifth of it.
  headBytes: 32 * 1024,
  // Protocol 17.1.
  bodyBytes: 8_000_000,
  // A guess: covers chat requests; a body of this size mostly arrives in one read.
  eagerBodyBytes: 64 * 1024,
  // A guess: half of uWS's receive buffer.
  bodyBufferBytes: 256 * 1024,
  // Within one callback uWS continues to read, paused or not, as long as each read fills its buffer of 512 KB: usually
  // 1.7 MB after a pause, up to a whole upload of 100 MB from a client on the same machine (both measured).
  bodyBurstBytes: 2 * 1024 * 1024,
  spillFolder: tmpdir(),
  // A guess: handlers read a body first; a minute means a disk with serious problems.
  bodyPauseTimeoutMs: 60_000,
  bodyStallTimeoutMs: 30_000,
  bodyGraceMs: 30_000,
  // A 4 KB/s uplink must pass (uWS alone would cut it: it demands 16 KB/s); one byte a second must not.
  bodyBytesPerSecond: 1024,
  // A whole transcription upload (100 MB, protocol 9.1): many clients read no response before they have sent
  // everything.
  discardBytes: 128 * 1024 * 1024,
  // A guess: 5 s of 24 kHz PCM, or 1,000 chat chunks, in addition to the kernel's buffer (measured: 3.9 MB on
  // loopback).
  readerBufferBytes: 256 * 1024,
  stallTimeoutMs: 30_000,
  // A guess: several round trips of a slow mobile link.
  lingerMs: 2_000,
  // All 120 s of a live session are 3.84 MB of 16 kHz PCM and may arrive as one message.
  frameBytes: 4 * 1024 * 1024,
  // Twice the longest message that is taken. uWebSockets.js and `ws` hold a message in memory until it is whole.
  discardedFrameBytes: 32 * 1024 * 1024,
  // A guess: 4 s of the audio that takes the most bytes, so a client that sends in real time is not paused.
  inboundPauseBytes: 256 * 1024,
  // One message of the longest, and what came before it.
  inboundBytes: 16 * 1024 * 1024,
  // A guess: eight times that of one.
  unreadBytes: 128 * 1024 * 1024,
  outboundBytes: 256 * 1024,
  // uWS's default.
  webSocketIdleSeconds: 120,
}

/** Interval of deadline checks: a quarter of the shortest deadline, so each is met within 25 %. 10 ms to 1 s. */
export const sweepIntervalMs = (settings: TransportSettings): number =>
  Math.min(
    1_000,
    Math.max(
      10,
      Math.min(
        settings.bodyPauseTimeoutMs,
        settings.bodyStallTimeoutMs,
        settings.bodyGraceMs,
        settings.stallTimeoutMs,
        settings.lingerMs,
      ) / 4,
    ),
  )

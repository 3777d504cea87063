// Every bound and deadline of a listener, with its default and where it comes from. Read by the whole folder;
// set by whoever builds a listener (the defaults in production, short deadlines in tests).
import { tmpdir } from "node:os"

export interface TransportSettings {
  /** Open connections that are no WebSockets. One more is closed at once. */
  readonly maxConnections: number
  /** Whether bodies may come in chunks, whose framing uWS reads too freely. 411 where not. */
  readonly chunkedBodies: boolean
  /** Request head: names and values of all headers, method and target. Over it: 431. */
  readonly headBytes: number
  /** Request body where the handler sets no `MaxBodySize`. Over it: 413, and the connection is not read further. */
  readonly bodyBytes: number
  /** Bodies up to this size are collected first, and the handler then runs to its end inside one uWS callback. */
  readonly eagerBodyBytes: number
  /** Body bytes that wait for their reader before the connection is paused. uWS may still deliver what it is at. */
  readonly bodyBufferBytes: number
  /**
   * Body bytes in memory beyond which a body that comes on in spite of its pause goes to a temporary file. For one that
   * announces `bodyBytes` at most it is those.
   */
  readonly bodyBurstBytes: number
  /** Where that file is made, and forgotten at once: it never has a name that outlives the call. */
  readonly spillFolder: string
  /** A body that its handler does not read for this long is given up: a paused connection hides that its client left. */
  readonly bodyPauseTimeoutMs: number
  /** A body that is wanted and does not move for this long: 408. */
  readonly bodyStallTimeoutMs: number
  /** From this age on a body must have kept the average rate below, or: 408. */
  readonly bodyGraceMs: number
  readonly bodyBytesPerSecond: number
  /** What an answered request may still send of its body, read and thrown away; past it the connection closes. */
  readonly discardBytes: number
  /** Bytes of a response kept in this process for one reader. Over it the reader is cut. */
  readonly readerBufferBytes: number
  /** A reader that takes nothing for this long while a response waits for it is cut. */
  readonly stallTimeoutMs: number
  /** How long a refused connection stays open, unread, for its answer to arrive. */
  readonly lingerMs: number
  /** Longest WebSocket message delivered. Over it: close 1009. */
  readonly frameBytes: number
  /** Messages of one WebSocket that wait for their reader; uWS cannot pause one. Over it: close 1009. */
  readonly inboundBytes: number
  /** Outgoing bytes of one WebSocket beyond which its writer waits. */
  readonly outboundBytes: number
  /** A WebSocket that answers no ping for this long is closed. 0 or 8 to 960, in steps of 4 (uWS's granularity). */
  readonly webSocketIdleSeconds: number
}

export const defaultSettings: TransportSettings = {
  // Guess: 64 KB of head each are 512 MB at worst.
  maxConnections: 8_192,
  chunkedBodies: true,
  // Guess: a bearer token of a few KB and generous cookies are a fifth of it.
  headBytes: 32 * 1024,
  // Operating contract: 8 MB.
  bodyBytes: 8_000_000,
  // Guess: covers chat requests; a body of this size mostly arrives with one read.
  eagerBodyBytes: 64 * 1024,
  // Guess: half of uWS's receive buffer.
  bodyBufferBytes: 256 * 1024,
  // uWS reads on within one callback, paused or not, as long as each read fills its buffer of 512 KB: 1.7 MB after a
  // pause as a rule, up to a whole upload of 100 MB from a client on the same machine (both measured).
  bodyBurstBytes: 2 * 1024 * 1024,
  spillFolder: tmpdir(),
  // Guess: handlers read a body first thing; a minute is a disk in serious trouble.
  bodyPauseTimeoutMs: 60_000,
  bodyStallTimeoutMs: 30_000,
  bodyGraceMs: 30_000,
  // A 4 KB/s uplink must pass (uWS alone would cut it: it asks for 16 KB/s); one byte a second must not.
  bodyBytesPerSecond: 1024,
  // A whole transcription upload (100 MB by specification): many clients read no answer before they have sent all.
  discardBytes: 128 * 1024 * 1024,
  // Guess: 5 s of 24 kHz PCM, or 1,000 chat chunks, on top of what the kernel holds (measured: 3.9 MB on loopback).
  readerBufferBytes: 256 * 1024,
  stallTimeoutMs: 30_000,
  // Guess: several round trips of a bad mobile link.
  lingerMs: 2_000,
  // A live session's whole 120 s of 16 kHz PCM is 3.84 MB and may come as one message.
  frameBytes: 4 * 1024 * 1024,
  inboundBytes: 8 * 1024 * 1024,
  outboundBytes: 256 * 1024,
  // uWS's own default.
  webSocketIdleSeconds: 120,
}

/** How often deadlines are looked at: a quarter of the shortest, so that each is met within 25 %. 10 ms to 1 s. */
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

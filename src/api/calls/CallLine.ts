// The line of one call: what its caller sends waits here in its order, events and audio, until the conversation reads it, and what the conversation
// writes goes to the process of calls. A sideband's events join the caller's, and it gets all events that the caller gets.
import { Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Socket from "effect/socket/Socket"
import type { Peer, PeerListener } from "#actors/calls/CallPeers.ts"
import { maxMessageBytes, type PeerEnd, type PeerQuality } from "#calls/PeerWire.ts"
import { samplesToSeconds, speechRateHz } from "#domain/audio/Audio.ts"
import { audioFrame, TextFrame } from "#http/SocketFrames.ts"
import type { Line } from "../conversation/Line.ts"

type Frame = string | Uint8Array

/** Audio of the caller that may wait, seconds: a gateway that is so far behind does not catch up. A guess. */
const mostWaitingSeconds = 30

/**
 * Time that audio waits in a browser before it is heard, milliseconds, besides the way there: its jitter buffer was 55 ms in Chromium on the same
 * machine (measured), and grows with the jitter that it reports, by how much is a guess.
 */
const bufferMs = 55
const bufferPerJitter = 2

/** Half of the way to a caller and back, before the first report. A guess. */
const firstWayMs = 15

/** How it ended, in words for operators and for the close frame of a sideband. */
const endWords: Readonly<Record<PeerEnd, string>> = {
  left: "the caller has left",
  failed: "the call could not be connected",
  "too fast": "messages come faster than they are read",
  "too slow": "reader too slow",
  process: "the process of calls has ended",
}

export interface CallEnd {
  readonly code: number
  readonly reason: string
}

/** Someone else that follows the call. */
interface Follower {
  readonly event: (text: string) => void
  readonly ended: (end: CallEnd) => void
}

export class CallLine {
  #peer: Peer | undefined
  #frames: Array<Frame> = []
  #waitingSamples = 0
  /** Of them, the caller's messages. */
  readonly #unread = { messages: 0, bytes: 0 }
  #puller: (() => void) | undefined
  #isOpen = false
  /** Called when the data channel is open, or the call has ended before that. */
  #opened: (() => void) | undefined
  readonly #drainWaiters = new Set<() => void>()
  #end: CallEnd | undefined
  #quality: PeerQuality | undefined
  readonly #followers = new Set<Follower>()
  readonly #onEnd: (why: PeerEnd | "hung up" | "closed") => void

  constructor(onEnd: (why: PeerEnd | "hung up" | "closed") => void) {
    this.#onEnd = onEnd
  }

  /** For the process of calls. */
  readonly listener: PeerListener = {
    opened: () => {
      this.#isOpen = true
      this.#opened?.()
    },
    event: (text) => {
      this.#unread.messages++
      this.#unread.bytes += text.length
      this.#push(text)
    },
    heard: (samples) => {
      // The conversation has not begun.
      if (!this.#isOpen) return
      this.#waitingSamples += samples.length
      if (samplesToSeconds(this.#waitingSamples, speechRateHz) > mostWaitingSeconds)
        return this.#ended("too fast", { code: 1009, reason: endWords["too fast"] })
      this.#push(audioFrame(samples))
    },
    quality: (quality) => {
      this.#quality = quality
    },
    ended: (why) => this.#ended(why, { code: why === "process" ? 1011 : 1000, reason: endWords[why] }),
  }

  get end(): CallEnd | undefined {
    return this.#end
  }

  get quality(): PeerQuality | undefined {
    return this.#quality
  }

  connect(peer: Peer): void {
    this.#peer = peer
  }

  /** Completes when the caller's data channel is open; fails when the call has ended before. */
  readonly opened: Effect.Effect<void, Socket.SocketError> = Effect.callback((resume) => {
    const step = (): void => {
      if (this.#end !== undefined) resume(failure(this.#end))
      else if (this.#isOpen) resume(Effect.void)
      else this.#opened = step
    }
    step()
  })

  hangUp(): void {
    this.#ended("hung up", { code: 1000, reason: "hung up" })
  }

  /** What a sideband sends is carried out like an event of the caller. Completes when the conversation has read it. */
  inject(frame: Frame): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.#push(frame)
      if (this.#frames.length === 0) return resume(Effect.void)
      const drained = () => resume(Effect.void)
      this.#drainWaiters.add(drained)
      return Effect.sync(() => void this.#drainWaiters.delete(drained))
    })
  }

  follow(follower: Follower): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  readonly line: Line = {
    reader: {
      pull: Effect.callback<NonEmptyReadonlyArray<Frame>, Socket.SocketError>((resume) => {
        const step = (): void => {
          this.#puller = undefined
          if (this.#frames.length > 0) resume(Effect.succeed(this.#take()))
          else if (this.#end !== undefined) resume(failure(this.#end))
          else this.#puller = step
        }
        step()
        return Effect.sync(() => {
          this.#puller = undefined
        })
      }),
      upgrade: () =>
        Effect.fail(
          new Socket.SocketError({ reason: new Socket.SocketReadError({ cause: "not a stream" }) }),
        ),
    },
    writer: {
      write: (chunk) => this.#write([chunk]),
      writeAll: (chunks) => this.#write(chunks),
    },
    sound: {
      rateHz: speechRateHz,
      play: (samples) => this.#peer?.speech(samples),
      flush: () => this.#peer?.flush(),
      delayMs: () => {
        const { jitterMs = 0, roundTripMs } = this.#quality ?? {}
        return (
          (roundTripMs === undefined ? firstWayMs : roundTripMs / 2) + bufferMs + bufferPerJitter * jitterMs
        )
      },
    },
  }

  #push(frame: Frame): void {
    if (this.#end !== undefined) return
    this.#frames.push(frame)
    this.#puller?.()
  }

  #take(): NonEmptyReadonlyArray<Frame> {
    const frames = this.#frames
    this.#frames = []
    this.#waitingSamples = 0
    const { bytes, messages } = this.#unread
    this.#unread.messages = 0
    this.#unread.bytes = 0
    if (messages > 0) this.#peer?.taken(messages, bytes)
    this.#wakeDrained()
    return frames as unknown as NonEmptyReadonlyArray<Frame>
  }

  #write(chunks: ReadonlyArray<Frame | Socket.CloseEvent>): Effect.Effect<void, Socket.SocketError> {
    return Effect.suspend(() => {
      const end = this.#end
      if (end !== undefined) return failure(end)
      for (const chunk of chunks) {
        if (typeof chunk === "string" || chunk instanceof TextFrame) this.#send(chunk)
        else if (chunk instanceof Socket.CloseEvent)
          this.#ended("closed", { code: chunk.code, reason: chunk.reason ?? "" })
      }
      return Effect.void
    })
  }

  #send(chunk: string | TextFrame): void {
    const text = typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk)
    const fits = text.length <= maxMessageBytes && Buffer.byteLength(text) <= maxMessageBytes
    const sent = fits ? text : tooLarge
    this.#peer?.event(sent)
    for (const { event } of this.#followers) event(text)
  }

  #wakeDrained(): void {
    for (const drained of [...this.#drainWaiters]) drained()
    this.#drainWaiters.clear()
  }

  #ended(why: PeerEnd | "hung up" | "closed", end: CallEnd): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#frames = []
    this.#onEnd(why)
    this.#opened?.()
    this.#puller?.()
    this.#wakeDrained()
    for (const { ended } of this.#followers) ended(end)
  }
}

const failure = ({ code, reason }: CallEnd): Effect.Effect<never, Socket.SocketError> =>
  Effect.fail(new Socket.SocketError({ reason: new Socket.SocketCloseError({ code, closeReason: reason }) }))

/** Stands for an event that does not fit into a message of the data channel. */
const tooLarge = JSON.stringify({
  type: "error",
  event_id: "event_too_large",
  error: {
    type: "server_error",
    code: "event_too_large",
    message: `An event is larger than ${maxMessageBytes} bytes, the most that a message of the data channel may have`,
    param: null,
    event_id: null,
  },
})

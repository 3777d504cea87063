// One WebSocket as an Effect Socket: bounded in both directions, and every end reported with code and reason. `pull`
// and the writer fail when the client ends the socket. A handler that does neither is interrupted soon after, as with
// an ordinary request.
import { Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Socket from "effect/socket/Socket"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { freeMemory } from "#domain/queues/FreeMemory.ts"
import { KeptPiece, KeptPieces } from "#domain/queues/KeptPieces.ts"
import type { Holding } from "#domain/queues/MemoryBudget.ts"
import type { SocketEnd } from "#http/NodeMeters.ts"
import { CutFrame, type MessageSize, type SocketOwner, TextFrame } from "#http/SocketFrames.ts"
import { nowMs, type Watched } from "../Deadlines.ts"
import type { SocketChannel, SocketEvents } from "./Channel.ts"
import { sendableCode, shortReason } from "./CloseFrame.ts"
import type { Exchange } from "./Exchange.ts"
import type { ListenerState } from "./ListenerState.ts"

type Frame = string | Uint8Array

/** What a handler opens a socket with, see SocketMessageSize and CurrentSocketOwner. */
export interface SocketTerms {
  readonly size?: MessageSize | undefined
  readonly owner?: SocketOwner | undefined
}

/** A message that is not read yet; a piece where its reader is far behind. */
interface Unread {
  readonly frame: Frame | KeptPiece
  readonly isBinary: boolean
  readonly bytes: number
}

/** Larger texts are handed over as their bytes (TextFrame), which are not in the heap. A guess: decoding smaller ones costs less. */
const largeTextBytes = 16 * 1024

/** Bytes that are left at either end of a message that is too large. */
const cutBytes = 2_048

const text = new TextDecoder()

/**
 * Messages of this size are not limited by number, because their bytes are bounded. 10 ms of 16 kHz PCM are 320 bytes.
 */
const paidBytes = 256
/**
 * Allowance of smaller messages; an empty one counts as one. Clients send 50 to 100 frames a second, all of them
 * larger. The burst is 20 s of the smallest frames, delayed by a stalled link.
 */
const smallMessages = { burst: 2_048, perSecond: 200 }
/** Per tick. A whole live session in frames of 10 ms, sent at once, is 12,000. */
const tickMessages = 16_384

/** A library drops frames while this many times `outboundBytes` are unsent. A writer that waits stays below. */
export const droppedFactor = 2

export class LiveSocket implements SocketEvents, Watched {
  listedAt = -1
  readonly #exchange: Exchange
  readonly #listener: ListenerState
  readonly #size: MessageSize
  readonly #owner: SocketOwner | undefined
  #ws: SocketChannel | undefined
  #end: Socket.SocketError | undefined
  #inbound: Array<Unread> = []
  /** Holds the small ones of `inbound` that come while more waits than causes a pause. */
  readonly #kept = new KeptPieces()
  /** Counts the bytes of `inbound`. */
  readonly #unread: Holding
  /** Counts those that are large, together with those of its owner's other sockets. */
  readonly #large: Holding
  /** Counts the bytes of a message of which only a part has come. Apart from `unread`, which says when to pause. */
  readonly #arriving: Holding
  /** The connection is not read, because enough waits to be read by the handler. */
  #paused = false
  readonly #smallMessages = new TokenBucket(smallMessages, nowMs())
  #puller: (() => void) | undefined
  #wakes = false
  #tick = -1
  #tickMessages = 0
  readonly #openWaiters = new Set<() => void>()
  readonly #drainWaiters = new Set<() => void>()
  #outboundBytes = 0
  #movedMs = 0

  /** How it ends, where the node ends it. */
  #how: SocketEnd | undefined

  /** Set if the handler ended before uWS reported the socket as open. */
  #endAtOpen: { readonly code: number; readonly reason: string } | undefined

  /** True if the handler knows that the socket has ended, because it was notified or ended it itself. */
  #endKnown = false

  constructor(exchange: Exchange, { owner, size }: SocketTerms = {}) {
    this.#exchange = exchange
    this.#listener = exchange.listener
    this.#size = size ?? { mostBytes: this.#listener.settings.frameBytes, cuts: false }
    this.#owner = owner
    this.#unread = this.#listener.counters.unread.open(this)
    this.#arriving = this.#listener.counters.unread.open({})
    this.#large = this.#listener.counters.unreadLarge.open(owner?.id ?? this)
  }

  // ---------------------------------------------------------------- for handlers

  readonly pull: Effect.Effect<NonEmptyReadonlyArray<Frame>, Socket.SocketError> = Effect.callback(
    (resume) => {
      const step = (): void => {
        this.#puller = undefined
        if (this.#inbound.length > 0) resume(Effect.succeed(this.#take()))
        else if (this.#end !== undefined) resume(this.#failure(this.#end))
        else this.#puller = step
      }
      step()
      return Effect.sync(() => {
        this.#puller = undefined
      })
    },
  )

  /** Sends in one system call. Waits before and after while more than the bound is unsent. */
  readonly writeAll = (
    chunks: ReadonlyArray<Frame | Socket.CloseEvent>,
  ): Effect.Effect<void, Socket.SocketError> =>
    Effect.suspend(() => {
      if (this.#end !== undefined) return this.#failure(this.#end)
      if (this.#ws === undefined) return Effect.andThen(this.#opened, this.writeAll(chunks))
      if (this.#isFull()) return Effect.andThen(this.#drained, this.writeAll(chunks))
      if (this.#send(this.#ws, chunks)) {
        // A frame is lost, so the frames after it would be wrong.
        this.#close(1013, "reader too slow")
        return Effect.fail(
          new Socket.SocketError({ reason: new Socket.SocketWriteError({ cause: "dropped" }) }),
        )
      }
      return this.#isFull() ? this.#drained : Effect.void
    })

  /** Ends the socket on behalf of the handler: the next `pull` fails with this code. */
  finish(code: number, reason: string): void {
    this.#endKnown = true
    this.#close(code, reason)
  }

  /** The handler has ended and reads no more. */
  leave(code: number): void {
    this.finish(code, "")
    this.#drop()
  }

  #close(code: number, reason: string): void {
    if (this.#ws === undefined) this.#endAtOpen ??= { code, reason }
    else {
      this.#how ??= this.#losesFrames(this.#ws) ? "unread" : "node"
      this.#ws.end(sendableCode(code), shortReason(reason))
    }
  }

  /** True while frames are dropped: so much is unsent only where a writer does not wait for the reader. */
  #losesFrames(ws: SocketChannel): boolean {
    return ws.getBufferedAmount() > this.#listener.settings.outboundBytes * droppedFactor
  }

  // ---------------------------------------------------------------- for the library

  open(ws: SocketChannel): void {
    this.#listener.counters.webSockets++
    // The socket was closed within this call: `ws` must not be used again.
    if (this.#end !== undefined) return
    this.#ws = ws
    for (const wake of [...this.#openWaiters]) wake()
    const early = this.#endAtOpen
    if (early !== undefined) this.#close(early.code, early.reason)
  }

  get mostBytes(): number {
    return this.#size.mostBytes
  }

  arriving(bytes: number): boolean {
    const more = bytes - this.#arriving.bytes
    if (more <= 0) this.#arriving.giveBack(-more)
    else if (!this.#arriving.take(more)) {
      this.#listener.counters.socketsOverrun++
      return false
    }
    return true
  }

  message(data: Uint8Array, isBinary: boolean, owned = false): void {
    this.#arriving.giveBack(this.#arriving.bytes)
    if (data.byteLength > this.#size.mostBytes)
      return this.#tooLarge(data.subarray(0, cutBytes), data.subarray(-cutBytes), isBinary, data.byteLength)
    if (this.#end === undefined)
      this.#add(data.byteLength, isBinary, (isLate) =>
        isLate && data.byteLength <= largeTextBytes ? this.#kept.keep(data) : framed(data, isBinary, owned),
      )
  }

  tooLarge(first: Uint8Array, last: Uint8Array, isBinary: boolean): void {
    this.#tooLarge(first, last, isBinary, 0)
  }

  /** `received`: bytes of it that were received in one go. */
  #tooLarge(first: Uint8Array, last: Uint8Array, isBinary: boolean, received: number): void {
    this.#arriving.giveBack(this.#arriving.bytes)
    if (this.#end !== undefined) return
    const { cuts, mostBytes } = this.#size
    if (isBinary || !cuts) {
      this.#owner?.dropped(received)
      return this.#close(1009, `message larger than ${mostBytes} bytes`)
    }
    this.#add(2 * cutBytes, isBinary, () => CutFrame.from([...first, ...last]) as CutFrame)
  }

  /** Adds a message of so many bytes to those that wait. `isLate`: more waits than causes a pause. */
  #add(bytes: number, isBinary: boolean, frame: (isLate: boolean) => Frame | KeptPiece): void {
    const { counters, settings } = this.#listener
    const flood = this.#floodOf(bytes)
    if (flood !== undefined) {
      counters.socketsFlooded++
      return this.#close(1008, flood)
    }
    const isLate = this.#unread.bytes > settings.inboundPauseBytes
    const isAwaited = this.#puller !== undefined && this.#inbound.length === 0
    if (isAwaited) this.#keep(bytes)
    else if (!this.#holds(bytes)) {
      counters.socketsOverrun++
      // Nothing is copied of this one, and what waits is of no use: its handler is interrupted soon.
      this.#drop(bytes)
      return this.#close(1009, "messages come faster than they are read")
    }
    this.#inbound.push({ frame: frame(isLate), isBinary, bytes })
    this.#wakeReader()
    if (this.#unread.bytes <= settings.inboundPauseBytes || this.#paused) return
    this.#paused = true
    this.#ws?.pause()
  }

  /** A message that is as large as what causes a pause. Clients that stream audio send smaller ones. */
  #isLarge(bytes: number): boolean {
    return bytes > this.#listener.settings.inboundPauseBytes
  }

  /** Counts a message whose reader waits for it. */
  #keep(bytes: number): void {
    this.#unread.keep(bytes)
    if (this.#isLarge(bytes)) this.#large.keep(bytes)
  }

  /** Counts a message that waits. False where there is no room for it. */
  #holds(bytes: number): boolean {
    if (!this.#unread.take(bytes)) return false
    if (!this.#isLarge(bytes) || this.#large.take(bytes)) return true
    this.#unread.giveBack(bytes)
    return false
  }

  /** Frees the messages that wait. `more`: bytes of one that is dropped besides. */
  #drop(more = 0): void {
    const dropped = this.#inbound.splice(0)
    let bytes = more
    for (const message of dropped) {
      bytes += message.bytes
      const { frame } = message
      if (frame instanceof KeptPiece) frame.take(() => undefined)
      else if (typeof frame !== "string" && message.bytes > largeTextBytes) freeMemory(frame)
    }
    this.#unread.giveBack(bytes - more)
    this.#large.giveBack(this.#large.bytes)
    if (bytes > 0) this.#owner?.dropped(bytes)
  }

  drain(): void {
    if (!this.#isFull()) this.#wakeWriters()
  }

  closed(code: number, reason: string, how?: "silent" | "malformed"): void {
    this.#listener.counters.socketEnds[this.#how ?? how ?? (code === 1006 ? "vanished" : "client")]++
    this.#ws = undefined
    this.#unread.end()
    this.#large.end()
    this.#arriving.end()
    this.#end = new Socket.SocketError({ reason: new Socket.SocketCloseError({ code, closeReason: reason }) })
    this.#listener.counters.webSockets--
    // A handler ends in about a millisecond, and many sockets may close at once.
    this.#listener.ticks.afterwards(() => {
      for (const wake of [...this.#openWaiters]) wake()
      this.#wakeWriters()
      this.#puller?.()
    })
    if (!this.#endKnown)
      setTimeout(() => this.#listener.ticks.afterwards(this.#giveUp), unreportedEndMs).unref()
  }

  /** The handler does not read, and does not know that the socket has ended. */
  readonly #giveUp = (): void => {
    if (!this.#endKnown) this.#exchange.interrupt()
  }

  /** While a writer waits: disconnects the reader if it takes nothing for too long. */
  sweep(now: number): void {
    const bytes = this.#ws?.getBufferedAmount() ?? 0
    if (bytes !== this.#outboundBytes) {
      this.#outboundBytes = bytes
      this.#movedMs = now
    } else if (now - this.#movedMs >= this.#listener.settings.stallTimeoutMs) {
      this.#listener.counters.slowReadersCut++
      this.#how ??= "unread"
      this.#ws?.close()
    }
  }

  // ---------------------------------------------------------------- inside

  #floodOf(sizeBytes: number): string | undefined {
    const { ticks } = this.#listener
    if (this.#tick !== ticks.current) {
      this.#tick = ticks.current
      this.#tickMessages = 0
    }
    if (++this.#tickMessages > tickMessages) return "too many messages at once"
    const cost = 1 - sizeBytes / paidBytes
    return cost <= 0 || this.#smallMessages.spend(cost, nowMs()) ? undefined : "too many small messages"
  }

  /** At the end of the tick, because waking for each message of a read would cost more than the messages. */
  #wakeReader(): void {
    if (this.#wakes) return
    this.#wakes = true
    this.#listener.ticks.afterwards(() => {
      this.#wakes = false
      this.#puller?.()
    })
  }

  #failure(end: Socket.SocketError): Effect.Effect<never, Socket.SocketError> {
    this.#endKnown = true
    return Effect.fail(end)
  }

  /** About as many as cause a pause, so that those that are handled and those that wait are not both many. */
  #take(): NonEmptyReadonlyArray<Frame> {
    const { settings } = this.#listener
    let bytes = 0
    let count = 0
    for (const message of this.#inbound) {
      if (count > 0 && bytes + message.bytes > settings.inboundPauseBytes) break
      bytes += message.bytes
      count++
    }
    this.#unread.giveBack(bytes)
    // It is alone.
    if (this.#isLarge(bytes)) this.#large.giveBack(bytes)
    if (this.#paused && this.#unread.bytes <= settings.inboundPauseBytes) {
      this.#paused = false
      this.#ws?.resume()
    }
    const taken = this.#inbound.splice(0, count)
    return taken.map(({ frame, isBinary }) =>
      frame instanceof KeptPiece ? frame.take((bytes) => framed(bytes, isBinary, false)) : frame,
    ) as unknown as NonEmptyReadonlyArray<Frame>
  }

  /** True if a message was dropped. */
  #send(ws: SocketChannel, chunks: ReadonlyArray<Frame | Socket.CloseEvent>): boolean {
    let dropped = false
    ws.cork(() => {
      for (const chunk of chunks) {
        if (Socket.isCloseEvent(chunk)) return this.finish(chunk.code, chunk.reason ?? "")
        if (!ws.send(chunk)) dropped = true
      }
    })
    return dropped
  }

  #isFull(): boolean {
    return this.#ws !== undefined && this.#ws.getBufferedAmount() > this.#listener.settings.outboundBytes
  }

  readonly #opened: Effect.Effect<void> = waitOn(this.#openWaiters)

  readonly #drained: Effect.Effect<void, Socket.SocketError> = Effect.suspend(() => {
    if (this.#drainWaiters.size === 0) this.#movedMs = nowMs()
    this.#listener.deadlines.watch(this)
    return Effect.andThen(
      waitOn(this.#drainWaiters),
      Effect.suspend(() => (this.#end === undefined ? Effect.void : this.#failure(this.#end))),
    )
  })

  #wakeWriters(): void {
    this.#listener.deadlines.unwatch(this)
    // Iterates over a copy: a waiter that finds the socket full again is added again.
    for (const wake of [...this.#drainWaiters]) wake()
  }
}

/** A copy, unless the bytes are owned: the library reuses their memory when its callback returns. */
const framed = (data: Uint8Array, isBinary: boolean, owned: boolean): Frame => {
  if (!isBinary && data.byteLength <= largeTextBytes) return text.decode(data)
  const Form = isBinary ? Uint8Array : TextFrame
  return owned ? new Form(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength) : new Form(data)
}

/** Protocol 1.9: a generation's slot is free within 100 ms after its client has left. This is half of it. */
const unreportedEndMs = 50

function waitOn(waiters: Set<() => void>): Effect.Effect<void> {
  return Effect.callback((resume) => {
    const wake = (): void => {
      waiters.delete(wake)
      resume(Effect.void)
    }
    waiters.add(wake)
    return Effect.sync(() => waiters.delete(wake))
  })
}

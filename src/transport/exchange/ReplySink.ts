// The sink for a response body of unknown length. While the reader keeps up, writes go corked to uWS; otherwise they
// wait in a bounded queue with a stall deadline.
import { Effect } from "effect"
import type { Sink } from "#http/SinkBody.ts"
import { nowMs, type Watched } from "../Deadlines.ts"
import { type Ending, type Exchange, renewAfterMs } from "./Exchange.ts"

type Chunk = string | Uint8Array

/**
 * Largest piece handed to uWS at once: the size of its cork buffer. What the kernel refuses of a piece stays in uWS's
 * memory, whose size cannot be read, and waits for our next call.
 */
const pieceBytes = 16 * 1024
/** UTF-16 units that take at most one piece as UTF-8. */
const pieceUnits = Math.floor(pieceBytes / 3)

const nothing = (): void => {}

/**
 * The argument of `sendCorked`. A cork calls back at once, so one variable serves all sinks, and no chunk needs a
 * closure.
 */
let corkedSink: ReplySink | undefined
let corkedChunk: Chunk = ""
const sendCorked = (): void => void corkedSink?.send(corkedChunk)

export class ReplySink implements Sink, Watched, Ending {
  // First, and so adjacent in memory: the fields that every write reads.
  readonly #exchange: Exchange
  /** True while chunks go to `pending`, until the socket accepts data again. */
  #blocked = false
  /** Since when no write has succeeded. Undefined while they do. */
  #stuckSinceMs: number | undefined
  listedAt = -1
  #pending: Array<Chunk> = []
  #pendingBytes = 0
  /** Upper bound of the bytes held by uWS. */
  #uwsBytes = 0
  /** A write failed, so uWS's 10 s timer runs until its next writable event. */
  #armed = false
  #renewedMs = 0
  #drainListener: () => void = nothing
  #waiter: () => void = nothing

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    exchange.reply = this
    exchange.res.onWritable(() => {
      this.#armed = false
      this.#through()
      this.#flush()
    })
  }

  // A field, because handlers pass it on without its object.
  readonly closed = (): boolean => this.#exchange.done

  write(chunk: Chunk): boolean {
    if (this.#exchange.done || chunk.length === 0) return true
    if (this.#blocked) this.#hold(chunk)
    else if (chunk.length <= pieceUnits || (typeof chunk !== "string" && chunk.length <= pieceBytes)) {
      this.#push(chunk)
    } else this.#pushPieces(piecesOf(chunk))
    return !this.#blocked
  }

  readonly onDrain = (listener: () => void): void => {
    this.#drainListener = listener
  }

  /** Writes all `chunks` in order and waits for the reader when necessary. */
  writeAll(chunks: ReadonlyArray<Uint8Array>): Effect.Effect<void> {
    return Effect.suspend(() => this.#writeFrom(chunks.flatMap(piecesOf), 0))
  }

  /** Completes when no chunk waits for the reader, or the exchange is over. */
  readonly drained: Effect.Effect<void> = Effect.callback((resume) => {
    if (!this.#blocked || this.#exchange.done) return resume(Effect.void)
    this.#waiter = () => resume(Effect.void)
    return Effect.sync(() => {
      this.#waiter = nothing
    })
  })

  sweep(now: number): void {
    const { stallTimeoutMs } = this.#exchange.listener.settings
    if (this.#blocked && this.#stuckSinceMs !== undefined && now - this.#stuckSinceMs >= stallTimeoutMs) {
      this.#cut()
    } else if (now - this.#renewedMs >= renewAfterMs) {
      this.#renewedMs = now
      this.#exchange.renewTimer()
      // The socket becomes writable only when a third of the kernel's send buffer is free. At the 48 KB/s of a player
      // that can take longer than the stall timeout, so flush without waiting. Each failed attempt leaves one more
      // piece in uWS, ten pieces in a stall.
      if (this.#blocked) this.#flush()
    }
  }

  release(): void {
    this.#exchange.listener.deadlines.unwatch(this)
    this.#through()
    this.#account(-this.#pendingBytes)
    this.#pending = []
    this.#pendingBytes = 0
    this.#blocked = false
    this.#wake()
  }

  #writeFrom(pieces: ReadonlyArray<Uint8Array>, start: number): Effect.Effect<void> {
    let at = start
    if (!this.#exchange.done && !this.#blocked) {
      this.#exchange.corked(() => {
        while (at < pieces.length && this.send(pieces[at++] as Uint8Array));
      })
    }
    if (this.#exchange.done || (at === pieces.length && !this.#blocked)) return Effect.void
    return Effect.flatMap(this.drained, () => this.#writeFrom(pieces, at))
  }

  #push(chunk: Chunk): void {
    corkedSink = this
    corkedChunk = chunk
    this.#exchange.corked(sendCorked)
    corkedSink = undefined
    corkedChunk = ""
    if (this.#blocked) this.#bound()
  }

  #pushPieces(pieces: ReadonlyArray<Uint8Array>): void {
    let sent = 0
    this.#exchange.corked(() => {
      while (sent < pieces.length && this.send(pieces[sent++] as Uint8Array));
    })
    for (const piece of pieces.slice(sent)) this.#hold(piece)
  }

  /** Sends one piece to uWS, inside a cork. */
  send(piece: Chunk): boolean {
    if (this.#exchange.res.write(piece)) {
      if (this.#stuckSinceMs !== undefined) this.#through()
      return true
    }
    const bytes = sizeOf(piece)
    this.#blocked = true
    this.#armed = true
    this.#uwsBytes += bytes
    this.#stuckSinceMs ??= nowMs()
    this.#account(bytes)
    this.#exchange.listener.deadlines.watch(this)
    return false
  }

  #hold(chunk: Chunk): void {
    if (this.#exchange.done) return
    const bytes = sizeOf(chunk)
    this.#pending.push(chunk)
    this.#pendingBytes += bytes
    this.#account(bytes)
    this.#bound()
  }

  #bound(): void {
    if (this.#pendingBytes + this.#uwsBytes > this.#exchange.listener.settings.readerBufferBytes) this.#cut()
  }

  /** Sends the waiting chunks as far as the socket accepts them. Notifies the producer when none waits any more. */
  #flush(): void {
    if (this.#exchange.done) return
    this.#blocked = false
    // Corks even without `pending`: that makes uWS retry what it holds. The result is unknown until the next write.
    this.#exchange.corked(() => {
      while (this.#pending.length > 0 && !this.#blocked) {
        const chunk = this.#pending.shift() as Chunk
        const bytes = sizeOf(chunk)
        this.#pendingBytes -= bytes
        this.#account(-bytes)
        this.send(chunk)
      }
    })
    if (this.#blocked || this.#exchange.done) return
    if (!this.#armed) this.#exchange.listener.deadlines.unwatch(this)
    this.#wake()
    this.#drainListener()
  }

  /** A write succeeded: uWS holds nothing, and the stall clock stops. */
  #through(): void {
    this.#stuckSinceMs = undefined
    this.#account(-this.#uwsBytes)
    this.#uwsBytes = 0
  }

  #cut(): void {
    this.#exchange.listener.counters.slowReadersCut++
    this.#exchange.cut()
  }

  #account(bytes: number): void {
    this.#exchange.listener.counters.replyBufferedBytes += bytes
  }

  #wake(): void {
    const waiter = this.#waiter
    this.#waiter = nothing
    waiter()
  }
}

const sizeOf = (chunk: Chunk): number =>
  typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk.byteLength

const piecesOf = (chunk: Chunk): Array<Uint8Array> => {
  const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk
  const pieces: Array<Uint8Array> = []
  for (let at = 0; at < bytes.byteLength; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes))
  return pieces
}

// A request body as it arrives: pauses, size limit, deadlines. Must be started in the tick of the request, because uWS
// loses the body otherwise. Answers a stalled body itself; the reader answers one that is too large.
import { Cause, Effect } from "effect"
import { isReadonlyArrayNonEmpty, type NonEmptyReadonlyArray } from "effect/Array"
import type { HttpServerError } from "effect/http/HttpServerError"
import { PieceBudget, requestPieces } from "#domain/queues/PieceBudget.ts"
import { joinedAtOnce } from "#http/JoinedBytes.ts"
import { judgeBody } from "../BodyTimeouts.ts"
import { nowMs, type Watched } from "../Deadlines.ts"
import { BodyBuffer } from "./BodyBuffer.ts"
import { endLinger, refuse, refuseAtOnce } from "./EarlyResponse.ts"
import { type Exchange, renewAfterMs } from "./Exchange.ts"
import type { BodyFailure, RequestBody } from "./RequestBody.ts"

/**
 * Bytes at which a reader is woken at once. Otherwise it is woken at the end of the tick, because a wake costs more
 * than a small piece.
 */
const wakeBytes = 16 * 1024

export class IncomingBody implements RequestBody, Watched {
  readonly lengthBytes: number | undefined
  receivedBytes = 0
  listedAt = -1
  ended = false
  paused = false
  failure: BodyFailure | undefined
  whole: Effect.Effect<Uint8Array, HttpServerError> | undefined
  #limitBytes = Number.POSITIVE_INFINITY
  readonly #exchange: Exchange
  readonly #buffer: BodyBuffer
  readonly #pieces = new PieceBudget(requestPieces)
  #waiter: (() => void) | undefined
  #wakes = false
  #onEnd: (() => void) | undefined
  readonly #startedMs = nowMs()
  #pausedMs = 0
  #pausesMs = 0
  #sweptMs = this.#startedMs
  #movedMs = this.#startedMs
  #renewedMs = this.#startedMs
  #seenBytes = 0

  constructor(exchange: Exchange, lengthBytes: number | undefined) {
    this.#exchange = exchange
    const { bodyBurstBytes, bodyBytes } = exchange.listener.settings
    // A body of this size would mostly be held in memory anyway and needs no disk.
    const small = lengthBytes !== undefined && lengthBytes <= bodyBytes
    this.#buffer = new BodyBuffer(exchange.listener, small ? bodyBytes : bodyBurstBytes)
    this.lengthBytes = lengthBytes
  }

  /** `onEnd` is called inside uWS's callback once the body is complete. */
  start(onEnd?: () => void): void {
    this.#onEnd = onEnd
    this.#exchange.listener.deadlines.watch(this)
    const exchange = this.#exchange
    exchange.res.onData((bytes, last) => {
      // Closing the connection in here must wait: uWS continues with the other chunks of this read.
      exchange.inCallback = true
      this.#receive(bytes, last)
      exchange.inCallback = false
    }, this.#malformed)
    // A small body is collected before its handler runs.
    if (onEnd !== undefined) exchange.res.wantBody()
  }

  limit(limitBytes: number): void {
    this.#limitBytes = limitBytes
    if ((this.lengthBytes ?? this.receivedBytes) > limitBytes) this.#tooLarge()
  }

  get limitedToBytes(): number {
    return this.#limitBytes
  }

  pull<E>(
    error: (failure: BodyFailure) => E,
  ): Effect.Effect<NonEmptyReadonlyArray<Uint8Array>, E | Cause.Done> {
    const arrived: Effect.Effect<NonEmptyReadonlyArray<Uint8Array>, E | Cause.Done> = Effect.callback(
      (resume) => {
        if (!this.#exchange.done) this.#exchange.res.wantBody()
        const step = (): void => {
          this.#waiter = undefined
          if (this.failure !== undefined) resume(Effect.fail(error(this.failure)))
          else if (this.#buffer.takeableBytes > 0) resume(Effect.succeed(this.#take()))
          else if (this.ended) resume(Cause.done())
          else this.#waiter = step
        }
        step()
        return Effect.sync(() => {
          this.#waiter = undefined
        })
      },
    )
    return Effect.suspend(() => {
      if (!this.#buffer.spilled || this.#buffer.takeableBytes > 0) return arrived
      return Effect.flatMap(
        Effect.promise(() => this.#takeSpilled()),
        (pieces) => (isReadonlyArrayNonEmpty(pieces) ? Effect.succeed(pieces) : arrived),
      )
    })
  }

  takeWhole(): Uint8Array | undefined {
    if (!this.ended || this.failure !== undefined || this.#buffer.takeableBytes !== this.receivedBytes)
      return undefined
    if (this.receivedBytes > joinedAtOnce) return undefined
    const whole = this.#buffer.takeWhole()
    this.resume()
    return whole
  }

  join(chunks: ReadonlyArray<Uint8Array>): Uint8Array {
    return this.#buffer.join(chunks)
  }

  giveBack(chunks: ReadonlyArray<Uint8Array>): void {
    this.#buffer.giveBack(chunks)
  }

  release(): void {
    this.#exchange.listener.deadlines.unwatch(this)
    if (!this.ended) this.failure ??= "Aborted"
    this.#buffer.drop()
    this.#wake()
  }

  stop(): void {
    if (this.paused || this.#exchange.done) return
    this.paused = true
    this.#exchange.res.pause()
  }

  resume(): void {
    if (!this.paused || this.#exchange.done) return
    this.paused = false
    this.#exchange.res.resume()
  }

  sweep(now: number): void {
    if (this.ended) return this.#renew(now)
    const sinceSweepMs = now - this.#sweptMs
    this.#sweptMs = now
    if (this.paused) {
      this.#pausedMs += sinceSweepMs
      this.#pausesMs += sinceSweepMs
      this.#movedMs = now
    } else {
      this.#pausedMs = 0
    }
    if (this.receivedBytes !== this.#seenBytes) {
      this.#seenBytes = this.receivedBytes
      this.#movedMs = now
    }
    const pace = {
      ageMs: now - this.#startedMs - this.#pausesMs,
      quietMs: now - this.#movedMs,
      pausedMs: this.#pausedMs,
      receivedBytes: this.receivedBytes,
    }
    const verdict = judgeBody(pace, this.#exchange.listener.settings)
    if (verdict.is === "stalled") this.#stalled(verdict.problem)
    else if (verdict.is === "unread") this.#exchange.cut()
    else this.#renew(now)
  }

  #renew(now: number): void {
    if (now - this.#renewedMs < renewAfterMs) return
    this.#renewedMs = now
    this.#exchange.renewTimer()
  }

  #receive(bytes: Uint8Array, last: boolean): void {
    const { ticks } = this.#exchange.listener
    const flaw = last ? undefined : this.#pieces.take(bytes.byteLength, ticks.current)
    if (flaw !== undefined) return this.#scattered(flaw)
    if (this.#exchange.done || this.failure !== undefined) return
    this.receivedBytes += bytes.byteLength
    if (this.receivedBytes > this.#limitBytes) return this.#tooLarge()
    if (bytes.byteLength > 0) this.#buffer.add(bytes)
    if (last) {
      this.ended = true
      // A pause that outlasts the body ends with a resume, which restarts uWS's timer permanently: see `sweep`.
      if (!this.paused) this.#exchange.listener.deadlines.unwatch(this)
    }
    if (last || this.#buffer.takeableBytes >= wakeBytes) this.#wake()
    else this.#wakeAfterwards()
    if (!last && this.#buffer.takeableBytes >= this.#exchange.listener.settings.bodyBufferBytes) this.stop()
    if (last && this.#onEnd !== undefined) this.#onEnd()
  }

  #take(): NonEmptyReadonlyArray<Uint8Array> {
    const taken = this.#buffer.take()
    this.#resumeWhenRead()
    return taken
  }

  async #takeSpilled(): Promise<ReadonlyArray<Uint8Array>> {
    const pieces = await this.#buffer.takeSpilled()
    // The connection stays paused although its handler reads.
    this.#pausedMs = 0
    this.#resumeWhenRead()
    return pieces
  }

  #resumeWhenRead(): void {
    const { bodyBufferBytes } = this.#exchange.listener.settings
    if (!this.#buffer.spilled && this.#buffer.takeableBytes < bodyBufferBytes) this.resume()
  }

  #wake(): void {
    this.#waiter?.()
  }

  #wakeAfterwards(): void {
    if (this.#wakes || this.#waiter === undefined) return
    this.#wakes = true
    this.#exchange.listener.ticks.afterwards(() => {
      this.#wakes = false
      this.#wake()
    })
  }

  /** Runs inside uWS's callback, and again for every further piece of the same read. */
  #scattered(problem: string): void {
    const exchange = this.#exchange
    if (exchange.done) return endLinger(exchange)
    if (this.failure === "Scattered") return
    this.failure = "Scattered"
    exchange.listener.counters.bodiesScattered++
    this.#end(() => refuseAtOnce(exchange, 400, `body: ${problem}`))
  }

  readonly #malformed = (problem: string): void => {
    const exchange = this.#exchange
    if (exchange.done || this.failure !== undefined) return
    this.failure = "Malformed"
    this.#end(() => refuse(exchange, 400, `body: ${problem}`))
  }

  #tooLarge(): void {
    if (this.failure !== undefined) return
    this.failure = "TooLarge"
    this.#exchange.listener.counters.bodiesTooLarge++
    this.#exchange.listener.deadlines.unwatch(this)
    this.#buffer.drop()
    this.stop()
    this.#wake()
  }

  #stalled(problem: string): void {
    this.failure = "Stalled"
    this.#exchange.listener.counters.bodiesStalled++
    this.#end(() => refuse(this.#exchange, 408, `body: ${problem}`))
  }

  /** Answers instead of the handler. */
  #end(answer: () => void): void {
    // The order matters: the interrupted handler's own response must find the exchange done, and a reader that cannot
    // be interrupted is woken last.
    const waiter = this.#waiter
    this.#waiter = undefined
    if (this.#exchange.headSent) this.#exchange.close()
    else answer()
    this.#exchange.interrupt()
    waiter?.()
  }
}

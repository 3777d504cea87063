// The gateway's side of one encoder on a codec thread: a small state machine between function calls (samples in, bytes
// out) and Effects (ready, failed, finish).

import { Effect, Exit } from "effect"
import { msToSamples, speechRateHz } from "#domain/audio/Audio.ts"
import { CodecFailed } from "../AudioErrors.ts"
import type { EncoderId, FromCodec, ToCodec } from "./CodecWire.ts"
import type { EncodedTotals, Encoder } from "./Encoder.ts"

/** Queued audio above which `push` asks the producer to wait: 10 s are 480 KB and about 200 ms of work for Opus. */
export const windowSamples = msToSamples(10_000, speechRateHz)
/**
 * Hard limit of queued samples. A producer that awaits `ready` stays far below it; exceeding it is a bug and fails the
 * encoder. A guess.
 */
export const overrunSamples = msToSamples(600_000, speechRateHz)

type Ending = Exit.Exit<EncodedTotals, CodecFailed>

export class ThreadEncoder implements Encoder {
  readonly #id: EncoderId
  readonly #onBytes: (bytes: Uint8Array, samples: number) => void
  readonly #post: (message: ToCodec, transfer: ReadonlyArray<ArrayBuffer>) => void
  readonly #maxSamples: number
  readonly #onEnded: () => void
  #outstanding = 0
  #samplesIn = 0
  /** Samples that the thread has consumed and that are not yet in any bytes. */
  #held = 0
  #sizeBytes = 0
  #finishing = false
  #ending: Ending | undefined
  readonly #waiters = new Set<() => void>()

  constructor(
    id: EncoderId,
    onBytes: (bytes: Uint8Array, samples: number) => void,
    post: (message: ToCodec, transfer: ReadonlyArray<ArrayBuffer>) => void,
    maxSamples: number,
    onEnded: () => void,
  ) {
    this.#id = id
    this.#onBytes = onBytes
    this.#post = post
    this.#maxSamples = maxSamples
    this.#onEnded = onEnded
  }

  readonly push = (samples: Int16Array): boolean => {
    if (this.#ending !== undefined || this.#finishing) return false
    if (samples.length === 0) return this.#outstanding <= windowSamples
    this.#samplesIn += samples.length
    this.#outstanding += samples.length
    if (this.#samplesIn > this.#maxSamples) {
      this.#abort("TooLong", `more than ${this.#maxSamples} samples for one encoder`)
      return false
    }
    if (this.#outstanding > overrunSamples) {
      this.#abort("Overrun", `${this.#outstanding} samples outstanding`)
      return false
    }
    // A copy: the view may lie in a larger buffer, and transferring takes all of it.
    const own = samples.slice()
    this.#post({ t: "push", id: this.#id, samples: own }, [own.buffer])
    return this.#outstanding <= windowSamples
  }

  readonly ready: Effect.Effect<void, CodecFailed> = Effect.suspend(() =>
    this.#when<void>(() => {
      if (this.#ending !== undefined) return Exit.asVoid(this.#ending)
      return this.#outstanding <= windowSamples ? Exit.void : undefined
    }),
  )

  readonly failed: Effect.Effect<never, CodecFailed> = Effect.suspend(() =>
    this.#when<never>(() =>
      this.#ending !== undefined && Exit.isFailure(this.#ending)
        ? Exit.failCause(this.#ending.cause)
        : undefined,
    ),
  )

  readonly finish: Effect.Effect<EncodedTotals, CodecFailed> = Effect.suspend(() => {
    if (this.#ending === undefined && !this.#finishing) {
      this.#finishing = true
      this.#post({ t: "finish", id: this.#id }, [])
    }
    return this.#when(() => this.#ending)
  })

  /** Handles a message of the thread about this encoder. */
  receive(message: Exclude<FromCodec, { t: "up" }>): void {
    if (this.#ending !== undefined) return
    if (message.t === "failed") {
      this.fail(new CodecFailed({ reason: "EncodeFailed", detail: message.detail }))
    } else if (message.t === "finished") {
      this.#end(Exit.succeed({ samples: this.#samplesIn, sizeBytes: this.#sizeBytes }))
    } else {
      this.#outstanding -= message.samples
      this.#held += message.samples
      if (message.bytes.length > 0) this.emit(message.bytes)
      if (this.#outstanding <= windowSamples) this.#wake()
    }
  }

  emit(bytes: Uint8Array): void {
    this.#sizeBytes += bytes.length
    const samples = this.#held
    this.#held = 0
    this.#onBytes(bytes, samples)
  }

  fail(error: CodecFailed): void {
    this.#end(Exit.fail(error))
  }

  /** The scope has closed. Unless `finish` has succeeded before, the thread drops what it holds. */
  close(): void {
    this.#abort("Closed", "the encoder was closed before it finished")
  }

  #abort(reason: "Overrun" | "TooLong" | "Closed", detail: string): void {
    if (this.#ending !== undefined) return
    this.#post({ t: "abort", id: this.#id }, [])
    this.fail(new CodecFailed({ reason, detail }))
  }

  #end(ending: Ending): void {
    if (this.#ending !== undefined) return
    this.#ending = ending
    this.#onEnded()
    this.#wake()
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter()
  }

  /** Waits until `look` returns a result. It is called now and after each change. */
  #when<A>(look: () => Exit.Exit<A, CodecFailed> | undefined): Effect.Effect<A, CodecFailed> {
    const now = look()
    if (now !== undefined) return now
    return Effect.callback((resume) => {
      const waiter = () => {
        const answer = look()
        if (answer === undefined) return
        this.#waiters.delete(waiter)
        resume(answer)
      }
      this.#waiters.add(waiter)
      return Effect.sync(() => this.#waiters.delete(waiter))
    })
  }
}

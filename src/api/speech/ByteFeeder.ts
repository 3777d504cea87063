// Feeds large pieces of encoded speech to a sink in slices, buffers what the socket does not accept yet and pauses the
// producer meanwhile. Speech needs it: a piece of audio is far larger than a token, and an engine makes it faster than
// it plays. It also counts the samples that were written, which is what a stream is charged for.
import { Deferred, Effect } from "effect"
import type { Sink } from "#http/SinkBody.ts"

/** Bytes of one write. Small enough that a single one never exceeds a socket's buffer limit. */
const sliceBytes = 32 * 1024

interface Slice {
  readonly bytes: Uint8Array
  readonly samples: number
}

interface FeederEvents {
  /** True when more bytes wait than allowed, false when none wait any more. */
  readonly busy: (busy: boolean) => void
  /** Samples that the socket has just accepted. */
  readonly delivered: (samples: number) => void
}

export class ByteFeeder {
  readonly #sink: Sink
  readonly #events: FeederEvents
  readonly #aheadBytes: number
  #busy = false
  #waitingBytes = 0
  #waiting: Array<Slice> = []
  #blocked = false
  #empty: Deferred.Deferred<void> | undefined

  /** `aheadBytes` may wait for the socket before the producer is paused. */
  constructor(sink: Sink, events: FeederEvents, aheadBytes = 0) {
    this.#aheadBytes = aheadBytes
    this.#sink = sink
    this.#events = events
    sink.onDrain(() => {
      this.#blocked = false
      this.#pump()
    })
  }

  /** `samples` of speech that end in these bytes. They are spread evenly over them: exact for PCM. */
  push(bytes: Uint8Array, samples: number): void {
    const idle = this.#waiting.length === 0
    let counted = 0
    for (let at = 0; at < bytes.length; at += sliceBytes) {
      const slice = bytes.subarray(at, at + sliceBytes)
      const upTo = Math.floor((samples * (at + slice.length)) / bytes.length)
      this.#waiting.push({ bytes: slice, samples: upTo - counted })
      counted = upTo
    }
    this.#waitingBytes += bytes.length
    if (idle) this.#pump()
    if (this.#busy || this.#waitingBytes <= this.#aheadBytes) return
    this.#busy = true
    this.#events.busy(true)
  }

  /** Completes when the socket has accepted everything. */
  get flushed(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#waiting.length === 0) return Effect.void
      this.#empty ??= Deferred.makeUnsafe<void>()
      return Deferred.await(this.#empty)
    })
  }

  #pump(): void {
    let taken = 0
    let samples = 0
    // A closed sink accepts everything and delivers nothing.
    while (taken < this.#waiting.length && !this.#blocked && !this.#sink.closed()) {
      const slice = this.#waiting[taken++]!
      this.#blocked = !this.#sink.write(slice.bytes)
      samples += slice.samples
      this.#waitingBytes -= slice.bytes.length
    }
    if (taken === 0) return
    this.#waiting = this.#waiting.slice(taken)
    this.#events.delivered(samples)
    if (this.#waiting.length > 0) return
    if (this.#busy) {
      this.#busy = false
      this.#events.busy(false)
    }
    if (this.#empty !== undefined) Deferred.doneUnsafe(this.#empty, Effect.void)
  }
}

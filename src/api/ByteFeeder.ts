// Feeds large pieces of bytes to a sink in slices, holding what the socket does not take yet and pausing the producer
// meanwhile. Speech needs it: a piece of audio is far larger than a token, and an engine makes it faster than it plays.
import { Deferred, Effect } from "effect"
import type { Sink } from "./SinkBody.ts"

/** One write. Small enough that a socket's buffer limit is never passed by a single one. */
const sliceBytes = 32 * 1024

export class ByteFeeder {
  private readonly sink: Sink
  private readonly onBusy: (busy: boolean) => void
  private waiting: Array<Uint8Array> = []
  private blocked = false
  private empty: Deferred.Deferred<void> | undefined
  /** Bytes that the socket has taken. */
  written = 0

  /** `onBusy(true)` when bytes begin to wait, `onBusy(false)` when none do any more. */
  constructor(sink: Sink, onBusy: (busy: boolean) => void) {
    this.sink = sink
    this.onBusy = onBusy
    sink.onDrain(() => {
      this.blocked = false
      this.pump()
    })
  }

  push(bytes: Uint8Array): void {
    const idle = this.waiting.length === 0
    for (let at = 0; at < bytes.length; at += sliceBytes)
      this.waiting.push(bytes.subarray(at, at + sliceBytes))
    if (!idle) return
    this.pump()
    if (this.waiting.length > 0) this.onBusy(true)
  }

  /** Completes when the socket has taken everything. */
  get flushed(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.waiting.length === 0) return Effect.void
      this.empty ??= Deferred.makeUnsafe<void>()
      return Deferred.await(this.empty)
    })
  }

  private pump(): void {
    if (this.blocked || this.waiting.length === 0) return
    let taken = 0
    while (taken < this.waiting.length && !this.blocked) {
      const slice = this.waiting[taken++]!
      this.blocked = !this.sink.write(slice)
      this.written += slice.length
    }
    this.waiting = this.waiting.slice(taken)
    if (this.waiting.length > 0) return
    this.onBusy(false)
    if (this.empty !== undefined) Deferred.doneUnsafe(this.empty, Effect.void)
  }
}

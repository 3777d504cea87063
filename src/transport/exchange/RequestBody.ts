// A request body as its readers and its exchange see it. IncomingBody receives it.
import type { Cause, Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { HttpServerError } from "effect/http/HttpServerError"

/** Why the rest of the body will not come. */
export type BodyFailure = "TooLarge" | "Stalled" | "Scattered" | "Malformed" | "Aborted"

export interface RequestBody {
  /** From content-length. Undefined for a chunked body. */
  readonly lengthBytes: number | undefined
  readonly receivedBytes: number
  /** True once all of it has arrived. */
  readonly ended: boolean
  /** True while the connection is not read. */
  readonly paused: boolean
  readonly failure: BodyFailure | undefined
  readonly limitedToBytes: number
  /** Set by the first reader of the whole body, for later ones. */
  whole: Effect.Effect<Uint8Array, HttpServerError> | undefined

  /** Sets the limit. A body that is or announces itself larger fails at once, unread. */
  limit(limitBytes: number): void
  /** Some of the unread bytes. Waits for more; done at the end. */
  pull<E>(
    error: (failure: BodyFailure) => E,
  ): Effect.Effect<NonEmptyReadonlyArray<Uint8Array>, E | Cause.Done>
  /** The whole body if it has arrived, nothing of it was read, and it can be joined in one tick. Undefined otherwise. */
  takeWhole(): Uint8Array | undefined
  /** Joins the chunks into one array. Their blocks may be reused afterwards. */
  join(chunks: ReadonlyArray<Uint8Array>): Uint8Array
  /** The chunks have been copied: their blocks may be reused. */
  giveBack(chunks: ReadonlyArray<Uint8Array>): void
  /** The response is being sent: the rest of the body may be discarded. */
  release(): void
  /** Pauses reading from the connection. Reading resumes when the body is read or released. */
  stop(): void
  resume(): void
}

// What an error class of Errors declares about itself. Everything that follows from an error (status, body, headers, who
// pays, whether a job waits, what OpenAPI says) is read from this declaration.
import type { Schema } from "effect"

export interface Failure<E> {
  /** HTTP status. */
  readonly status: number
  /** `node`: this side failed, so a client that has received nothing pays nothing. `caller`: the request was refused. */
  readonly fault: "caller" | "node"
  /** Whether the same request may succeed later: never, at some time, or `after` the seconds in `Retry-After`. */
  readonly retry: "no" | "yes" | "after"
  /** When it happens. The description in the OpenAPI document. */
  readonly when: string
  /** The sentence for the developer of the client. Never holds causes, paths or signals. */
  detail(error: E): string
  /** A second sentence, what the caller can do. Only in the error object of OpenAI's clients (protocol 3.1). */
  advice?(error: E): string | undefined
  /** The field of the request that the error is about. */
  param?(error: E): string
  /** OpenAI's code for the error; the class's name without it. */
  readonly code?: string
  /** Milliseconds of `Retry-After`, where `retry` is `after`. */
  retryAfterMs?(error: E): number
  /** The body, where it is not `{detail}` (protocol 3.1). */
  readonly body?: {
    readonly schema: Schema.Codec<object, unknown>
    of(error: E, detail: string): object
  }
  /** Headers beside `Retry-After`, by name. A header without a value is not sent. */
  readonly headers?: Readonly<Record<string, { of(error: E): string | undefined }>>
}

/** For errors with a field `retryAfterMs`. */
export const retryAfterMs = (error: { readonly retryAfterMs: number }): number => error.retryAfterMs

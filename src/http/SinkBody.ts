// The body of the hot path: the transport gives a handler that returns one a sink, and the handler writes to it
// straight from engine callbacks, without a fiber hop for each token. The Effect owns lifetime, cancellation and errors
// only. Defined here and not in transport because api and transport both use it.
import type { Effect } from "effect"
import { HttpServerResponse } from "effect/http"

export interface Sink {
  /** True once the response has ended or the client has disconnected; writes are then ignored. */
  readonly closed: () => boolean
  /**
   * Writes one chunk. Returns false when the socket's buffer is full: the chunk is kept, but the producer should
   * pause until `onDrain`. The transport cuts a reader that keeps it full too long or lets it grow too large.
   */
  write(chunk: string | Uint8Array): boolean
  /** Registers the only listener for the moment when the socket accepts data again. */
  readonly onDrain: (listener: () => void) => void
}

/** Runs until the body is complete. Success ends the response; failure closes the connection without ending it. */
type SinkBody = (sink: Sink) => Effect.Effect<void, unknown>

const SinkBodyId = "~edgewise/api/SinkBody"

/** A response whose body is written by `body` as it runs. */
export const sinkResponse = (
  body: SinkBody,
  options: {
    readonly status?: number
    readonly headers?: Record<string, string>
    readonly contentType: string
  },
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(
    { [SinkBodyId]: body },
    {
      status: options.status ?? 200,
      headers: { ...options.headers, "content-type": options.contentType },
    },
  )

/** The sink body inside a response body, if it is one. */
export const sinkBodyOf = (body: unknown): SinkBody | undefined =>
  typeof body === "object" && body !== null && SinkBodyId in body
    ? ((body as Record<string, unknown>)[SinkBodyId] as SinkBody)
    : undefined

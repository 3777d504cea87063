// `Idempotency-Key`: the first answer to a request is kept for a day, and a retry with the same key gets that answer
// and is not charged. Wraps the priced handlers; knows nothing of prices or of the content of answers.
//
// Keys belong to a user. The same key with another request is refused (422), and so is a retry while the first is still
// being answered (409). Only answers that succeeded are kept: a refusal or a failure leaves the key free, and so does a
// stream that did not reach its end, because its answer was not delivered whole.
import { createHash, hash } from "node:crypto"
import { createReadStream } from "node:fs"
import { Context, Effect, Layer, Schedule, type Scope } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  IdempotencyKeyReused,
  IdempotentAnswerLost,
  IdempotentPending,
  InvalidRequest,
} from "#domain/wire/Errors.ts"
import { CurrentRequest, type RequestContext } from "#http/RequestContext.ts"
import { type Sink, sinkBodyOf, sinkResponse } from "#http/SinkBody.ts"
import { Caller } from "#services/Caller.ts"
import { type AnswerId, IdempotencyStore, type StoredAnswer } from "#store/idempotency/IdempotencyStore.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** Longest key. OpenAI's and Stripe's clients send 36 to 50 characters; 255 is Stripe's limit. */
const plainKey = /^[\x21-\x7e]{1,255}$/

/** Interval of the search for expired answers. A guess: an hour more or less of a day does not matter. */
const purgeEveryMs = 60 * 60 * 1000

/** Retry-After of 409: a first answer that is still being made rarely ends sooner. A guess. */
const pendingRetryMs = 1_000

/** Bytes hashed in one event loop tick: 0.6 ms (median, busy test machine). */
const hashedBytes = 1024 * 1024

type IdempotencyError = IdempotencyKeyReused | IdempotentAnswerLost | IdempotentPending | InvalidRequest

export class Idempotency extends Context.Service<
  Idempotency,
  {
    /** Requests with a key that are being answered now: id → digest. As many as there are requests. */
    readonly pending: Map<string, string>
  }
>()("edgewise/api/Idempotency") {
  static readonly layer: Layer.Layer<Idempotency, never, IdempotencyStore> = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const answers = yield* IdempotencyStore
      yield* answers.purge.pipe(
        Effect.catchDefect((cause) => Effect.logError("old answers could not be removed", String(cause))),
        Effect.repeat(Schedule.spaced(purgeEveryMs)),
        Effect.forkScoped,
      )
      return { pending: new Map() }
    }),
  )
}

const keyOf = (request: Request): string | undefined => request.headers["idempotency-key"]

/** Fails for an invalid key; undefined if the request has none. */
const answerIdOf = (request: Request): Effect.Effect<AnswerId | undefined, InvalidRequest, Caller> => {
  const key = keyOf(request)
  if (key === undefined) return Effect.succeed(undefined)
  if (!plainKey.test(key)) {
    const problem = "must be 1 to 255 visible ASCII characters"
    return Effect.fail(new InvalidRequest({ field: "Idempotency-Key", problem }))
  }
  return Effect.map(Caller, ({ orgId, userId }) => ({
    id: hash("sha256", `${userId}\n${key}`),
    orgId,
    userId,
  }))
}

/** Whether a stored answer exists: then the request needs no money and no slot. */
export const isAnswered = (
  request: Request,
): Effect.Effect<boolean, InvalidRequest, IdempotencyStore | Caller> =>
  Effect.flatMap(answerIdOf(request), (id) =>
    id === undefined ? Effect.succeed(false) : Effect.flatMap(IdempotencyStore, (answers) => answers.has(id)),
  )

/** Method, address and body of a request in one digest; large bodies are hashed over several event loop ticks. */
export const digestOfBytes = Effect.fnUntraced(function* (request: Request, bytes: Uint8Array) {
  const digest = createHash("sha256").update(`${request.method} ${request.url}\n`)
  for (let at = 0; at < bytes.length; at += hashedBytes) {
    if (at > 0) yield* Effect.sleep(0)
    digest.update(bytes.subarray(at, at + hashedBytes))
  }
  return digest.digest("hex")
})

/** The same for a form with a file on disk. The boundary between its parts differs in every try and is left out. */
export const digestOfUpload = (
  request: Request,
  upload: { readonly path: string; readonly fields: ReadonlyMap<string, ReadonlyArray<string>> },
): Effect.Effect<string> =>
  Effect.promise(async () => {
    const digest = createHash("sha256").update(`${request.method} ${request.url}\n`)
    digest.update(JSON.stringify([...upload.fields].sort(([a], [b]) => (a < b ? -1 : 1))))
    for await (const chunk of createReadStream(upload.path)) digest.update(chunk as Buffer)
    return digest.digest("hex")
  })

const replayOf = (
  stored: StoredAnswer,
  notes: RequestContext,
): Effect.Effect<Response, IdempotentAnswerLost> => {
  if (stored.body === undefined) return Effect.fail(new IdempotentAnswerLost())
  if (stored.receiptId !== undefined) notes.reserved({ receiptId: stored.receiptId, state: "settled" })
  const { "content-type": contentType, ...headers } = stored.headers
  return Effect.succeed(
    HttpServerResponse.uint8Array(stored.body, {
      status: stored.status,
      headers: { ...headers, "idempotency-replayed": "true" },
      ...(contentType === undefined ? {} : { contentType }),
    }),
  )
}

/** Collects the bytes of a stream, as long as they may still be kept. */
class Recording {
  #chunks: Array<Uint8Array> = []
  #sizeBytes = 0
  readonly #limitBytes: number

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  add(chunk: string | Uint8Array): void {
    // A copy: the producer may reuse the bytes.
    const bytes = Buffer.from(chunk)
    this.#sizeBytes += bytes.length
    if (this.#sizeBytes > this.#limitBytes) this.#chunks = []
    else this.#chunks.push(bytes)
  }

  get body(): Uint8Array | undefined {
    return this.#sizeBytes > this.#limitBytes ? undefined : Buffer.concat(this.#chunks)
  }
}

/** Far above what IdempotencyStore keeps; only bounds what a stream may hold meanwhile. */
const recordedBytes = 16 * 1024 * 1024

/** Stores the answer before its last byte is sent. */
const recorded = (
  response: Response,
  keep: (body: Uint8Array | undefined) => Effect.Effect<void>,
  notes: RequestContext,
): Effect.Effect<Response> => {
  const { body } = response
  if (response.status >= 300) return Effect.succeed(response)
  if (body._tag === "Uint8Array") return Effect.as(keep(body.body), response)
  const sinkBody = body._tag === "Raw" ? sinkBodyOf(body.body) : undefined
  if (sinkBody === undefined) return Effect.succeed(response)
  const { "content-type": contentType = "", ...headers } = response.headers
  return Effect.succeed(
    sinkResponse(
      (sink) => {
        const recording = new Recording(recordedBytes)
        const recorder: Sink = {
          closed: sink.closed,
          onDrain: sink.onDrain,
          write: (chunk) => {
            recording.add(chunk)
            return sink.write(chunk)
          },
        }
        return Effect.andThen(
          sinkBody(recorder),
          Effect.suspend(() => (sink.closed() || notes.failed ? Effect.void : keep(recording.body))),
        )
      },
      { status: response.status, headers, contentType },
    ),
  )
}

/** `first` is the digest of the request with the same key that is being answered now, here or at another node. */
const refused = (first: string, digest: string): Effect.Effect<never, IdempotencyError> =>
  first === digest
    ? Effect.fail(new IdempotentPending({ retryAfterMs: pendingRetryMs }))
    : Effect.fail(new IdempotencyKeyReused())

const once = <E, R, E2, R2>(
  id: AnswerId,
  digestOf: Effect.Effect<string, E2, R2>,
  handler: Effect.Effect<Response, E, R>,
): Effect.Effect<
  Response,
  E | E2 | IdempotencyError,
  R | R2 | IdempotencyStore | Idempotency | Scope.Scope
> =>
  Effect.gen(function* () {
    const answers = yield* IdempotencyStore
    const notes = yield* CurrentRequest
    const { pending } = yield* Idempotency
    const digest = yield* digestOf
    const first = pending.get(id.id)
    if (first !== undefined) return yield* refused(first, digest)
    pending.set(id.id, digest)
    yield* Effect.addFinalizer(() => Effect.sync(() => pending.delete(id.id)))
    yield* Effect.acquireRelease(answers.claim(id, digest), (other) =>
      other === undefined ? answers.release(id) : Effect.void,
    ).pipe(Effect.flatMap((other) => (other === undefined ? Effect.void : refused(other, digest))))
    const stored = yield* answers.find(id)
    if (stored !== undefined) {
      if (stored.digest !== digest) return yield* new IdempotencyKeyReused()
      return yield* replayOf(stored, notes)
    }
    const response = yield* handler
    const keep = (body: Uint8Array | undefined) => {
      const { headers, status } = response
      const { "content-length": _, ...own } = headers
      return answers.keep(id, { digest, status, headers: own, receiptId: notes.receipt?.receiptId, body })
    }
    return yield* recorded(response, keep, notes)
  })

/** Runs a handler once for each key, and unchanged for a request without one. */
export const idempotent = <E, R, E2, R2>(
  request: Request,
  digestOf: Effect.Effect<string, E2, R2>,
  handler: Effect.Effect<Response, E, R>,
): Effect.Effect<
  Response,
  E | E2 | IdempotencyError,
  R | R2 | IdempotencyStore | Caller | Idempotency | Scope.Scope
> =>
  keyOf(request) === undefined
    ? handler
    : Effect.flatMap(answerIdOf(request), (id) => (id === undefined ? handler : once(id, digestOf, handler)))

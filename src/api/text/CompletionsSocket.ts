// GET /v1/completions/ws: text completions and chats over one WebSocket, several at a time. Each client text frame is the
// body of one of them with an optional `request_id`, or a cancel; answers carry the id.
import { Effect, FiberMap } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type SocketError } from "effect/socket/Socket"
import { Drain } from "#actors/Drain.ts"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { CancelFrame, ChatStartFrame, type GenerationId, StartFrame } from "#domain/wire/events/TextEvents.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { isObject } from "#domain/wire/text/Fields.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { NewId } from "#http/Ids.ts"
import { nowMs } from "#http/RequestContext.ts"
import { TextFrame } from "#http/SocketFrames.ts"
import { Accounts, type Principal } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { credentialOf, identify } from "../access/Authentication.ts"
import { credentialEnds } from "../access/CredentialEnd.ts"
import { RateLimit } from "../access/RateLimit.ts"
import { decodeValue, parseFrame } from "../http/JsonBody.ts"
import { ownedBy, refuseDropped } from "../live/DroppedBytes.ts"
import { GenerationTrace } from "../tracing/GenerationTrace.ts"
import { traceSession } from "../tracing/SessionTrace.ts"
import { Outbox } from "./Outbox.ts"
import { runGeneration, type Start } from "./SocketGeneration.ts"

/**
 * Messages that one socket may send. Starts are bounded by the user's rate; a message that starts nothing costs about
 * as much to read. A guess: a client that starts 16 generations and cancels them five times a second.
 */
const messages = { burst: 1_000, perSecond: 160 }
/** Generations one socket may have running. A guess: as many as an engine has slots by default. */
const maxRunning = 16
const isCancel = (body: unknown): boolean => isObject(body) && body.type === "cancel"

const decodeCancel = decodeValue(CancelFrame)
const decodeCompletion = decodeValue(StartFrame)
const decodeChat = decodeValue(ChatStartFrame)

/** A frame with `messages` and without `prompt` starts a chat, any other a text completion. */
const decodeStart = (body: unknown): Effect.Effect<Start, InvalidRequest> =>
  isObject(body) && (body.messages ?? null) !== null && !("prompt" in body)
    ? decodeChat(body)
    : decodeCompletion(body)

/** The id that a client gave, if it can be read from a frame that could not be decoded. */
const requestIdIn = (body: unknown): GenerationId | undefined => {
  const id = isObject(body) ? body.request_id : undefined
  return typeof id === "string" || typeof id === "number" ? id : undefined
}

const flooded = new CloseEvent(1008, "too many messages")

const serve = Effect.fnUntraced(function* (
  httpRequest: HttpServerRequest.HttpServerRequest,
  caller: Principal,
) {
  const accounts = yield* Accounts
  const drain = yield* Drain
  const limit = yield* RateLimit
  const newId = yield* NewId
  const socket = yield* ownedBy(caller.userId, httpRequest.upgrade)
  const reader = yield* socket.reader
  const writer = yield* socket.writer
  const trace = yield* traceSession("completions socket", (ended) => ended.generating())
  const outbox = new Outbox()
  const running = yield* FiberMap.make<GenerationId, void, never>()

  const onFrame = (frame: string | Uint8Array) =>
    Effect.gen(function* () {
      if (typeof frame !== "string" && !(frame instanceof TextFrame)) {
        return yield* new InvalidRequest({ field: "frame", problem: "must be a text frame" })
      }
      const body = yield* parseFrame(frame)
      if (isCancel(body)) {
        const { request_id } = yield* decodeCancel(body)
        return yield* FiberMap.remove(running, request_id)
      }
      const request_id = requestIdIn(body) ?? `req-${newId()}`
      yield* Effect.gen(function* () {
        const start = yield* decodeStart(body)
        if (yield* FiberMap.has(running, request_id)) {
          return yield* new InvalidRequest({
            field: "request_id",
            problem: "is already running on this socket",
          })
        }
        if ((yield* FiberMap.size(running)) >= maxRunning) {
          const problem = `at most ${maxRunning} generations may run on one socket`
          return yield* new InvalidRequest({ field: "request_id", problem })
        }
        yield* limit.admit(caller.userId)
        const one = trace === undefined ? undefined : new GenerationTrace(trace, request_id)
        yield* FiberMap.run(running, request_id, runGeneration(caller, start, request_id, outbox, one))
      }).pipe(
        Effect.catch((error: EdgeError) =>
          Effect.sync(() => outbox.push({ type: "error", error: detailOf(error), request_id })),
        ),
      )
    }).pipe(
      Effect.catch((error: EdgeError) =>
        Effect.sync(() => outbox.push({ type: "error", error: detailOf(error) })),
      ),
    )

  const allowance = new TokenBucket(messages, nowMs())
  const read = Effect.gen(function* () {
    for (;;) {
      for (const frame of yield* reader.pull) {
        if (!allowance.spend(1, nowMs())) return yield* writer.write(flooded)
        yield* onFrame(frame)
      }
    }
  })
  const write = Effect.forever(outbox.writeTo(writer))
  const close = (code: number, reason: string) => {
    trace?.closed(code)
    return new CloseEvent(code, reason)
  }
  const revoked = Effect.flatMap(credentialEnds(accounts, caller), (end) => writer.write(close(1008, end)))
  const tooSlow = outbox.overflow.await.pipe(
    // Generations end first: the close frame waits for the same reader.
    Effect.andThen(FiberMap.clear(running)),
    Effect.andThen(Effect.suspend(() => writer.write(close(1013, "reader too slow")))),
  )
  const stopping = drain.closing.pipe(
    Effect.andThen(FiberMap.awaitEmpty(running)),
    Effect.andThen(Effect.sync(() => outbox.close(close(1001, "server is shutting down")))),
    // The peer's own close frame ends the reader, and with it everything.
    Effect.andThen(Effect.never),
  )
  yield* Effect.raceAllFirst([read, write, revoked, tooSlow, stopping]).pipe(
    Effect.tapError((error) => Effect.sync(() => trace?.left(error))),
  )
})

/** Refused before the upgrade like any request; after it, failures are frames. */
export const completionsSocket = (httpRequest: HttpServerRequest.HttpServerRequest) =>
  Effect.gen(function* () {
    if ((httpRequest.headers.upgrade ?? "").toLowerCase() !== "websocket") {
      return yield* new InvalidRequest({ field: "upgrade", problem: "this address speaks WebSocket only" })
    }
    const url = new URL(httpRequest.url, "http://edge")
    const caller = yield* identify(credentialOf(httpRequest, url))
    yield* refuseDropped(caller.userId)
    // No money is reserved before a frame starts a generation; a caller without money is refused before the upgrade.
    yield* Effect.scoped((yield* UsageLedger).reserve(caller, 0))
    yield* serve(httpRequest, caller).pipe(
      // The client has disconnected, or the socket was closed here: no frame can be sent.
      Effect.catchIf(
        (error): error is SocketError => error._tag === "SocketError",
        () => Effect.void,
      ),
      Effect.orDie,
    )
    return HttpServerResponse.empty()
  })

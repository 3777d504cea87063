// POST /v1/realtime/calls: a browser offers a call (WebRTC), and a conversation begins over it. The body is the offer itself, or a form with
// the offer and a session. The answer leaves as soon as the conversation is admitted; the call goes on without the request.
import { ByteSize, Deferred, Effect, Fiber, Schema, Stream } from "effect"
import { HttpIncomingMessage, type HttpServerRequest, HttpServerResponse, Multipart } from "effect/http"
import { CallPeers } from "#actors/calls/CallPeers.ts"
import { maxMessageBytes } from "#calls/PeerWire.ts"
import { maxOfferCharacters, type Offer, readOffer } from "#domain/calls/Offer.ts"
import { maxTermsCharacters } from "#domain/conversation/ClientSecretTerms.ts"
import { SessionChange } from "#domain/conversation/Settings.ts"
import { BodyTooLarge, InvalidRequest } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { optional, textUpTo } from "#domain/wire/text/Fields.ts"
import { NewId } from "#http/Ids.ts"
import { CurrentRequest, RequestContext } from "#http/RequestContext.ts"
import { headerCredential } from "../access/Authentication.ts"
import { holdConversation } from "../conversation/door/Converse.ts"
import { identifyOpener, type Opener, openerOf } from "../conversation/door/Opener.ts"
import { bodyBytes, decodeValue, parseFrame } from "../http/JsonBody.ts"
import { CallLine } from "./CallLine.ts"
import { OpenCalls } from "./OpenCalls.ts"

/** The model of a call that names none. */
const defaultModel = "gpt-realtime"

/** A form has two parts with their heads. */
const maxBodyBytes = maxOfferCharacters + 4 * maxTermsCharacters + 16_384

const Session = Schema.Struct({ ...SessionChange.fields, model: optional(textUpTo(256)) })
const decodeSession = decodeValue(Session)

interface Body {
  readonly sdp: string
  readonly session: typeof Session.Type | undefined
}

const invalid = (field: string, problem: string) => new InvalidRequest({ field, problem })

const multipartProblem = (error: Multipart.MultipartError): InvalidRequest | BodyTooLarge => {
  switch (error.reason._tag) {
    case "BodyTooLarge":
    case "FieldTooLarge":
    case "FileTooLarge":
      return new BodyTooLarge({ limitBytes: maxBodyBytes })
    default:
      return invalid("body", "is not complete and correct multipart/form-data")
  }
}

const text = new TextDecoder()

/** The parts `sdp` and `session`, each as a field or, with a content type of its own, as a file. */
const readForm = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const parts = new Map<string, string>()
  yield* Stream.runForEach(request.multipartStream, (part) =>
    Effect.gen(function* () {
      const value = Multipart.isField(part)
        ? part.value
        : text.decode(Buffer.concat(yield* Stream.runCollect(part.content)))
      if (part.key !== "sdp" && part.key !== "session")
        return yield* invalid(
          part.key.slice(0, 64) || "body",
          "is not known here: a call has sdp and session",
        )
      if (parts.has(part.key)) return yield* invalid(part.key, "must be given once")
      parts.set(part.key, value)
    }),
  ).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodyBytes)),
    Effect.provideService(Multipart.MaxParts, 4),
    Effect.provideService(Multipart.MaxFieldSize, ByteSize.bytes(maxBodyBytes)),
    Effect.mapError((error) => (error._tag === "MultipartError" ? multipartProblem(error) : error)),
  )
  const session = parts.get("session")
  if (session !== undefined && session.length > maxTermsCharacters)
    return yield* invalid("session", `must be at most ${maxTermsCharacters} characters of JSON`)
  const body: Body = {
    sdp: parts.get("sdp") ?? "",
    session: session === undefined ? undefined : yield* decodeSession(yield* parseFrame(session)),
  }
  return body
})

const readBody = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const type = request.headers["content-type"] ?? ""
  if (/^multipart\/form-data\s*;/i.test(type)) return yield* readForm(request)
  if (!/^application\/sdp\s*(?:;|$)/i.test(type))
    return yield* invalid("body", "must be application/sdp, or multipart/form-data with sdp and session")
  const body: Body = { sdp: text.decode(yield* bodyBytes(request, maxOfferCharacters)), session: undefined }
  return body
})

/** Opens the call's line: answers the offer, tells it to the request, and waits for the caller. */
const callLine = Effect.fnUntraced(function* (
  id: string,
  { caller }: Opener,
  offer: Offer,
  answered: (answer: string) => void,
) {
  const calls = yield* OpenCalls
  const call = new CallLine(calls.ended)
  const peer = yield* (yield* CallPeers).open(offer, call.listener)
  call.connect(peer)
  yield* calls.enter(id, caller, call)
  answered(peer.answer)
  yield* call.opened
  return call.line
})

/** Runs a call apart from its request, which waits for the answer, or for the refusal of the call. */
const answerOf = Effect.fnUntraced(function* <E extends EdgeError, R>(
  run: (answered: (answer: string) => void) => Effect.Effect<void, E, R>,
) {
  const answer = Deferred.makeUnsafe<string, E>()
  const call = run((text) => Deferred.doneUnsafe(answer, Effect.succeed(text))).pipe(
    Effect.catchCause((cause) => Effect.sync(() => Deferred.doneUnsafe(answer, Effect.failCause(cause)))),
    // The request ends long before the call.
    Effect.provideService(CurrentRequest, new RequestContext(undefined, yield* NewId)),
  )
  const fiber = yield* Effect.forkIn(call, (yield* OpenCalls).scope, { startImmediately: true })
  return yield* Effect.onInterrupt(Deferred.await(answer), () => Fiber.interrupt(fiber))
})

export const createCall = Effect.fn("Call.create")(function* (request: HttpServerRequest.HttpServerRequest) {
  const url = new URL(request.url, "http://edge")
  const identity = yield* identifyOpener(headerCredential(request))
  const { sdp, session } = yield* readBody(request)
  const { model, ...change } = session ?? { type: "realtime" as const }
  const found = yield* openerOf(identity, url.searchParams.get("model") ?? model ?? null, defaultModel)
  const opener = { ...found, session: [...found.session, change] }
  const offer = readOffer(sdp, maxMessageBytes)
  if ("problem" in offer) return yield* invalid("sdp", offer.problem)
  const newId = yield* NewId
  const id = `rtc_${newId()}`
  const written = yield* answerOf((answered) =>
    holdConversation(opener, callLine(id, opener, offer, answered)),
  )
  return HttpServerResponse.text(written, {
    status: 201,
    contentType: "application/sdp",
    headers: { location: `/v1/realtime/calls/${id}`, "cache-control": "no-store" },
  })
})

// GET /v1/audio/transcriptions/ws: live transcription. Binary frames of 16 kHz s16 PCM come in, captions go out while
// the speaker speaks, and `transcript.text.done` once, with the text that a file of the same audio gets. In this order:
// parameters, admission (refusals are HTTP), the session, the receipt.
import { Effect, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import type { LiveSession } from "#actors/live/LiveSession.ts"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import type { LiveError } from "#actors/live/SessionLease.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import type { InvalidRequest } from "#domain/wire/Errors.ts"
import { LiveParameters } from "#domain/wire/LiveParameters.ts"
import { isTrue, punctuationOf } from "#domain/wire/Transcription.ts"
import { checkPunctuation } from "#services/TranscriptionRun.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { onCredentialEnd } from "../access/CredentialEnd.ts"
import { invalidRequestOf } from "../http/JsonBody.ts"
import { keywordsOf } from "../http/Keywords.ts"
import { type SessionTrace, traceSession } from "../tracing/SessionTrace.ts"
import { ownedBy, refuseDropped } from "./DroppedBytes.ts"
import { IntakePace } from "./IntakePace.ts"
import { chargedSamples, identifyLive, liveModel, payFor, upgradeLive } from "./LiveAdmission.ts"
import { converse } from "./LiveConversation.ts"

const decodeParameters = Schema.decodeUnknownEffect(LiveParameters)

const parametersOf = (url: URL): Effect.Effect<LiveParameters, InvalidRequest> => {
  const given = [...url.searchParams].filter(([, value]) => value !== "")
  return Effect.mapError(decodeParameters(Object.fromEntries(given)), invalidRequestOf)
}

const serve = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const url = new URL(request.url, "http://edge")
  const caller = yield* identifyLive(request, url)
  yield* refuseDropped(caller.userId)
  const parameters = yield* parametersOf(url)
  const keywords = yield* keywordsOf((name) => url.searchParams.getAll(name))
  const entry = yield* liveModel(parameters.model, parameters.language)
  const language = parameters.language ?? entry.transcription?.defaultLanguage
  const punctuation = punctuationOf(parameters)
  yield* checkPunctuation(entry, punctuation, language)
  let failed = false
  let session: LiveSession<LiveError> | undefined
  let trace: SessionTrace | undefined
  const charged = (fails: boolean) => (session === undefined ? 0 : chargedSamples(session, fails))
  yield* payFor(
    caller,
    entry,
    () => charged(failed),
    () => charged(true),
  )
  const place = yield* (yield* LiveSessions).open({
    model: entry.id,
    org: caller.orgId,
    language,
    prompt: parameters.prompt ?? "",
    ...(keywords.length === 0 ? {} : { keywords }),
    punctuation,
    ...(parameters.window_s === undefined ? {} : { windowSeconds: Number(parameters.window_s) }),
    fromScratch: false,
  })
  const accounts = yield* Accounts
  const drain = yield* Drain
  yield* Effect.gen(function* () {
    const socket = yield* ownedBy(caller.userId, upgradeLive(request))
    const reader = yield* socket.reader
    const writer = yield* socket.writer
    trace = yield* traceSession("live transcription", (ended) => ended.hearing())
    if (trace !== undefined) trace.work.notes.model = entry.id
    session = (trace?.follow(place) ?? place).begin(yield* monotonicMs)
    failed = yield* converse(
      {
        session,
        language,
        pace: yield* (yield* IntakePace).open(caller.userId),
        speechEvents: isTrue(parameters.vad_events),
        onCredentialEnd: (told) => onCredentialEnd(accounts, caller, told),
        trace,
      },
      reader,
      writer,
    )
  }).pipe(
    // The client has disconnected, or the socket was closed here: no event can be sent.
    Effect.catchTag("SocketError", (error) => Effect.sync(() => trace?.left(error))),
    drain.admit,
  )
}, Effect.scoped)

/** Refused before the upgrade like any request; after it, failures are events. */
export const liveTranscription = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.as(serve(request), HttpServerResponse.empty())

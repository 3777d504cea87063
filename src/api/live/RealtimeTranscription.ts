// GET /v1/realtime?intent=transcription: OpenAI's realtime protocol for transcription sessions, so that stock voice
// clients connect. 24 kHz PCM in base64 comes in, items with their transcripts go out; under it lie the same live
// sessions as under /v1/audio/transcriptions/ws. Holds admission and the life of the socket; RealtimeSocket handles
// events.
import { Cause, Effect, Exit, Schema, Scope } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type Writer } from "effect/socket/Socket"
import { Drain } from "#actors/Drain.ts"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import type { SessionLease } from "#actors/live/SessionLease.ts"
import { idleMs } from "#domain/audio/Listening.ts"
import { expectsTurns } from "#domain/models/ModelNames.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { defaultTurns, type RealtimeSettings } from "#domain/wire/RealtimeProtocol.ts"
import { punctuationOf, TranscriptionParameters } from "#domain/wire/Transcription.ts"
import { NewId } from "#http/Ids.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import { DetectionModels } from "#services/detection/DetectionModels.ts"
import { checkPunctuation } from "#services/TranscriptionRun.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { credentialEnds } from "../access/CredentialEnd.ts"
import { RateLimit } from "../access/RateLimit.ts"
import { invalidRequestOf } from "../http/JsonBody.ts"
import { type SessionTrace, traceSession } from "../tracing/SessionTrace.ts"
import { ownedBy, refuseDropped } from "./DroppedBytes.ts"
import { EventReader, eventSize } from "./EventReader.ts"
import type { LiveServices, Seat } from "./Hearing.ts"
import { IntakePace } from "./IntakePace.ts"
import { identifyLive, liveModel, upgradeLive } from "./LiveAdmission.ts"
import { RealtimeItems, type Tell } from "./RealtimeItems.ts"
import { RealtimeSocket } from "./RealtimeSocket.ts"
import { socketShare } from "./SocketShare.ts"
import { eventWriter } from "./WriteEvent.ts"

const decodeFlags = Schema.decodeUnknownEffect(
  Schema.Struct({ punctuation: TranscriptionParameters.fields.punctuation }),
)

const settingsOf = (
  url: URL,
): Effect.Effect<RealtimeSettings & { readonly asked: string | undefined }, InvalidRequest> => {
  const intent = url.searchParams.get("intent") ?? "transcription"
  if (intent !== "transcription") {
    return Effect.fail(new InvalidRequest({ field: "intent", problem: "must be transcription" }))
  }
  const asked = url.searchParams.get("model") ?? undefined
  const flag = url.searchParams.get("punctuation")
  return Effect.mapBoth(decodeFlags(flag ? { punctuation: flag } : {}), {
    onFailure: invalidRequestOf,
    onSuccess: (flags) => ({
      asked,
      model: "",
      language: undefined,
      prompt: "",
      keywords: [],
      logprobs: false,
      punctuation: punctuationOf(flags),
      turns: expectsTurns(asked) ? defaultTurns : null,
    }),
  })
}

/** Clients of the protocol's first event names request them in a header or, from a browser, as a subprotocol. */
const isOlder = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  (headers["openai-beta"] ?? "").includes("realtime=v1") ||
  (headers["sec-websocket-protocol"] ?? "").includes("openai-beta.realtime-v1")

/** A session lease in a scope of its own, so that it can be exchanged. */
const takeSeat = Effect.fnUntraced(function* (
  model: string | undefined,
  settings: RealtimeSettings,
  org: string,
  outer: Scope.Scope,
  replaces?: SessionLease,
) {
  const entry = yield* liveModel(model, settings.language)
  const { keywords, logprobs, prompt, punctuation } = settings
  yield* checkPunctuation(entry, punctuation, settings.language)
  const scope = yield* Scope.fork(outer)
  const request = {
    model: entry.id,
    org,
    language: settings.language ?? entry.transcription?.defaultLanguage,
    prompt,
    ...(keywords.length === 0 ? {} : { keywords }),
    ...(logprobs ? { logprobs } : {}),
    punctuation,
    fromScratch: false,
    ...(replaces === undefined ? {} : { replaces }),
  }
  const place = yield* (yield* LiveSessions).open(request).pipe(
    Scope.provide(scope),
    Effect.onError(() => Scope.close(scope, Exit.void)),
  )
  return { entry, place, leave: Scope.close(scope, Exit.void) } satisfies Seat
})

const tellOn = (writer: Writer, newId: () => string, trace: SessionTrace | undefined): Tell => {
  const write = eventWriter(writer, newId)
  return (type, event) => {
    if (trace !== undefined && type.endsWith(".delta")) trace.deltas++
    return write(type, event)
  }
}

/** The same lease, with its items recorded in the socket's span. */
export const followed = (trace: SessionTrace | undefined, seat: Seat): Seat => {
  if (trace === undefined) return seat
  trace.work.notes.model = seat.entry.id
  const leave = Effect.andThen(
    seat.leave,
    Effect.sync(() => trace.leave(seat.place)),
  )
  return { ...seat, place: trace.follow(seat.place), leave }
}

const serve = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const url = new URL(request.url, "http://edge")
  const caller = yield* identifyLive(request, url)
  yield* refuseDropped(caller.userId)
  const { asked, ...initial } = yield* settingsOf(url)
  const accounts = yield* Accounts
  const drain = yield* Drain
  const newId = yield* NewId
  // No money is reserved before audio arrives; a caller without money is refused before the upgrade.
  yield* Effect.scoped((yield* UsageLedger).reserve(caller, 0))
  const scope = yield* Effect.scope
  const share = yield* socketShare(caller.userId)
  const seat = yield* takeSeat(asked, initial, caller.orgId, scope)
  const settings = { ...initial, model: seat.entry.id }
  const detection = yield* (yield* DetectionModels).open
  let trace: SessionTrace | undefined
  yield* Effect.gen(function* () {
    const connection = yield* ownedBy(caller.userId, upgradeLive(request, eventSize))
    const reader = yield* connection.reader
    const writer = yield* connection.writer
    trace = yield* traceSession("realtime transcription", (ended) => ({
      ...ended.hearing(),
      "edgewise.items": ended.parts,
    }))
    const tell = tellOn(writer, newId, trace)
    const older = isOlder(request)
    const items = new RealtimeItems({ tell, caller, scope: yield* Effect.scope, held: share.held, older })
    const follow = (next: Seat) => followed(trace, next)
    const reseat = (next: RealtimeSettings, replaced: SessionLease) =>
      Effect.map(takeSeat(next.model, next, caller.orgId, scope, replaced), follow)
    const admit = (yield* RateLimit).admit(caller.userId)
    const pace = yield* (yield* IntakePace).open(caller.userId)
    const hears = { tell, items, pace, detection, seat: follow(seat), reseat, admit }
    const socket = new RealtimeSocket(`sess_${newId()}`, settings, hears, older)
    const events = new EventReader<EdgeError, LiveServices>({
      tell,
      share,
      pace,
      carryOut: socket.carryOut,
      tellError: socket.tellError,
    })
    yield* socket.created
    const gone = new CloseEvent(1001, "server is shutting down")
    const drained = Effect.andThen(drain.closing, Effect.as(items.finished, gone))
    const locked = Effect.map(credentialEnds(accounts, caller), (end) => new CloseEvent(1008, end))
    const close = yield* Effect.raceAllFirst([events.readUntilIdle(reader, idleMs), drained, locked]).pipe(
      Effect.catchCauseIf(Cause.hasDies, (cause) =>
        Effect.as(reportFailure(cause, "/v1/realtime"), new CloseEvent(1011, "failed")),
      ),
    )
    trace?.closed(close.code)
    yield* writer.write(close)
  }).pipe(
    Effect.catchTag("SocketError", (error) => Effect.sync(() => trace?.left(error))),
    drain.admit,
  )
}, Effect.scoped)

/** Refused before the upgrade like any request; after it, failures are events. */
export const realtimeTranscription = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.as(serve(request), HttpServerResponse.empty())

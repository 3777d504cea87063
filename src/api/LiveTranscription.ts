// GET /v1/audio/transcriptions/ws: live transcription. Binary frames of 16 kHz s16 PCM come in, captions go out while
// the speaker speaks, and `transcript.text.done` once, with the text that a file of the same audio gets.
// In the order: parameters and admission (refusals are HTTP), frames in, events out, the end.
import { Cause, Clock, Effect, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type Reader, type SocketError, type Writer } from "effect/socket/Socket"
import { Drain } from "#actors/Drain.ts"
import { type LiveEnd, type LiveSession, type LiveWord, remainingMs } from "#actors/LiveSession.ts"
import { type LiveError, LiveSessions } from "#actors/LiveSessions.ts"
import { LISTEN_RATE_HZ, samplesToSeconds } from "#domain/Audio.ts"
import type { InvalidRequest } from "#domain/Errors.ts"
import { LiveParameters, windowSeconds } from "#domain/LiveParameters.ts"
import { deltaOf } from "#domain/LiveTranscript.ts"
import { Accounts } from "#store/Accounts.ts"
import { problemOf } from "./ErrorBody.ts"
import { decodeJson, invalidRequestOf } from "./JsonBody.ts"
import { chargedSamples, identifyLive, liveModel, payFor, upgradeLive } from "./LiveAdmission.ts"

/** How a session ends on the wire: last events, then the close frame. */
interface Ending {
  readonly events: ReadonlyArray<object>
  readonly code: number
  readonly reason: string
}

const failure = (error: string, code: number, reason: string): Ending => ({
  events: [{ type: "error", error }],
  code,
  reason,
})

/** The contract's close codes. */
const closeOf: Readonly<Record<LiveEnd, readonly [code: number, reason: string]>> = {
  stop: [1000, ""],
  limit: [4008, "session limit"],
  idle: [1000, "idle"],
  drain: [1001, "server is shutting down"],
}

/** This side's failure; the audio behind the last caption is not charged then. */
const failedCode = 1011

const decodeParameters = Schema.decodeUnknownEffect(LiveParameters)

/** A session without audio that nobody stopped has nothing to say. */
const endingOf = (
  { end, hypothesis }: LiveWord,
  session: LiveSession<LiveError>,
  language: string | undefined,
): Ending => {
  const [code, reason] = closeOf[end]
  const done = {
    type: "transcript.text.done",
    text: hypothesis.text,
    duration: samplesToSeconds(session.samples, LISTEN_RATE_HZ),
    language: hypothesis.language ?? language ?? "en",
  }
  return { events: session.samples > 0 || end === "stop" ? [done] : [], code, reason }
}

// ---------------------------------------------------------------- frames

/** How files begin that clients send by mistake: RIFF, Ogg, FLAC, MP3 with a tag, WebM. */
const fileMarks = ["RIFF", "OggS", "fLaC", "ID3", "\x1a\x45\xdf\xa3"]

const isFile = (frame: Uint8Array): boolean => {
  const start = Buffer.from(frame.subarray(0, 4)).toString("latin1")
  return fileMarks.some((mark) => start.startsWith(mark))
}

const decodeText = decodeJson(Schema.Struct({ type: Schema.Literal("stop") }))

const takeAudio = (session: LiveSession<LiveError>, frame: Uint8Array, nowMs: number): Ending | undefined => {
  if (session.hasEnded) return undefined
  if (frame.length % 2 === 1) {
    return failure("frame: must be 16-bit PCM: an even number of bytes", 1003, "not 16-bit PCM")
  }
  if (session.samples === 0 && isFile(frame)) {
    return failure("frame: must be raw PCM, not a file", 1003, "not 16-bit PCM")
  }
  session.push(frame, nowMs)
  return undefined
}

const takeText = (session: LiveSession<LiveError>, frame: string): Effect.Effect<Ending | undefined> => {
  if (session.hasEnded) return Effect.undefined
  return decodeText(frame).pipe(
    Effect.match({
      onSuccess: () => session.stop("stop"),
      onFailure: () => failure('frame: must be {"type":"stop"}', 1003, "unknown message"),
    }),
    Effect.map((ending) => ending ?? undefined),
  )
}

// ---------------------------------------------------------------- events

/** Contract: the client hears of the session's limit this long before it, milliseconds. */
const warnBeforeMs = 10_000

/** Writes captions and warnings as they come. What a slow reader missed is in the next caption. */
const caption = (session: LiveSession<LiveError>, writer: Writer): Effect.Effect<never, SocketError> =>
  Effect.gen(function* () {
    let shown = ""
    let warned = false
    for (let rev = 1; ; rev++) {
      const hypothesis = yield* session.nextHypothesis
      const delta = deltaOf(shown, hypothesis, rev)
      shown = hypothesis.text
      yield* writer.write(JSON.stringify({ type: "transcript.text.delta", ...delta }))
      const leftMs = remainingMs(session.samples)
      if (warned || leftMs > warnBeforeMs) continue
      warned = true
      yield* writer.write(JSON.stringify({ type: "warning", warning: "session limit", remaining_ms: leftMs }))
    }
  })

// ---------------------------------------------------------------- the session on its socket

interface Told {
  readonly session: LiveSession<LiveError>
  readonly language: string | undefined
  readonly revoked: Effect.Effect<void>
  readonly draining: Effect.Effect<void>
}

/** Runs the session until something ends it. Whichever of its fibers dies, the session ends with it. */
const conversation = (
  { draining, language, revoked, session }: Told,
  reader: Reader,
  writer: Writer,
): Effect.Effect<Ending, SocketError> => {
  const read = Effect.gen(function* () {
    for (;;) {
      const frames = yield* reader.pull
      const nowMs = yield* Clock.currentTimeMillis
      for (const frame of frames) {
        const ending =
          typeof frame === "string" ? yield* takeText(session, frame) : takeAudio(session, frame, nowMs)
        if (ending !== undefined) return ending
      }
    }
  })
  const listen = Effect.match(session.run, {
    onSuccess: (word) => endingOf(word, session, language),
    onFailure: (error) => failure(problemOf(error).detail, failedCode, "transcription failed"),
  })
  const drain = Effect.andThen(
    draining,
    Effect.suspend(() => {
      session.stop("drain")
      return Effect.never
    }),
  )
  const locked = Effect.as(revoked, failure("Invalid API key", 1008, "credential revoked"))
  return Effect.raceAllFirst([read, listen, caption(session, writer), session.idle, drain, locked]).pipe(
    Effect.catchCauseIf(Cause.hasDies, (cause) =>
      Effect.as(
        Effect.logError("live session failed", cause),
        failure("Internal server error", failedCode, "failed"),
      ),
    ),
  )
}

const parametersOf = (url: URL): Effect.Effect<LiveParameters, InvalidRequest> => {
  const given = [...url.searchParams].filter(([, value]) => value !== "")
  return Effect.mapError(decodeParameters(Object.fromEntries(given)), invalidRequestOf)
}

const serve = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const url = new URL(request.url, "http://edge")
  const caller = yield* identifyLive(request, url)
  const parameters = yield* parametersOf(url)
  const entry = yield* liveModel(parameters.model, parameters.language)
  const language = parameters.language ?? entry.transcription?.defaultLanguage
  let failed = false
  let session: LiveSession<LiveError> | undefined
  yield* payFor(caller, entry, () => (session === undefined ? 0 : chargedSamples(session, failed)))
  const place = yield* (yield* LiveSessions).open({
    model: entry.id,
    language,
    prompt: parameters.prompt ?? "",
    windowSeconds: Number(parameters.window_s ?? windowSeconds.default),
    fromScratch: false,
  })
  const accounts = yield* Accounts
  const drain = yield* Drain
  yield* Effect.gen(function* () {
    const socket = yield* upgradeLive(request)
    const reader = yield* socket.reader
    const writer = yield* socket.writer
    session = place.begin()
    const told = { session, language, revoked: accounts.revoked(caller), draining: drain.closing }
    const { code, events, reason } = yield* conversation(told, reader, writer)
    failed = code === failedCode
    for (const event of events) yield* writer.write(JSON.stringify(event))
    yield* writer.write(new CloseEvent(code, reason))
  }).pipe(
    // The client has gone, or the socket was closed under us: either way there is nobody to tell.
    Effect.catchIf(
      (error): error is SocketError => error._tag === "SocketError",
      () => Effect.void,
    ),
    drain.admit,
  )
}, Effect.scoped)

/** Refused before the upgrade like any request; after it, failures are events. */
export const liveTranscription = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.as(serve(request), HttpServerResponse.empty())

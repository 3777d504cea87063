// Admission and price of a live session: everything that is decided before a WebSocket is answered, and the
// receipt at its end. Knows neither events nor frames.
import { Effect, type Scope } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { Socket } from "effect/socket/Socket"
import { type LiveSession, longestSessionSeconds } from "#actors/live/LiveSession.ts"
import type { LiveError } from "#actors/live/SessionLease.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { listenRateHz, msToSamples } from "#domain/audio/Audio.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { costOf } from "#domain/models/Money.ts"
import { audioUsage } from "#domain/models/Usage.ts"
import { InvalidRequest, ModelNotLoaded, type PaymentRequired } from "#domain/wire/Errors.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { type MessageSize, SocketMessageSize } from "#http/SocketFrames.ts"
import { findModel } from "#services/ModelLookup.ts"
import { checkLanguage } from "#services/TranscriptionRun.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { CurrentSpendingLimit } from "#store/ledger/SpendingLimit.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { credentialOf, identify } from "../access/Authentication.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Browsers cannot set headers on a WebSocket; they send a key in OpenAI's subprotocol. */
const keyProtocol = "openai-insecure-api-key."

const protocolsOf = (request: Request): ReadonlyArray<string> =>
  (request.headers["sec-websocket-protocol"] ?? "")
    .split(",")
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== "")

export const isWebSocket = (request: Request): boolean =>
  (request.headers.upgrade ?? "").toLowerCase() === "websocket"

/** The credential of a socket: token, header or subprotocol, in this order; empty without one. */
export const liveCredential = (request: Request, url: URL): string => {
  const offered = protocolsOf(request).find((protocol) => protocol.startsWith(keyProtocol))
  return credentialOf(request, url) || (offered?.slice(keyProtocol.length) ?? "")
}

/** The caller of a socket; a valid credential counts against its rate. */
export const identifyLive = Effect.fnUntraced(function* (request: Request, url: URL) {
  if (!isWebSocket(request)) {
    return yield* new InvalidRequest({ field: "upgrade", problem: "this address speaks WebSocket only" })
  }
  return yield* identify(liveCredential(request, url))
})

/** Answers the handshake. A client that offers subprotocols expects one of them back: the key only if there is no other. */
/** `size`: of its messages, where it is not the listener's. */
export const upgradeLive = (request: Request, size?: MessageSize): Effect.Effect<Socket> => {
  const offered = protocolsOf(request)
  const protocol = offered.find((one) => !one.startsWith(keyProtocol)) ?? offered[0]
  const headers = protocol === undefined ? {} : { "sec-websocket-protocol": protocol }
  return Effect.orDie(request.upgradeWith({ headers })).pipe(Effect.provideService(SocketMessageSize, size))
}

/** The model of a session: the named one, or the node's first that transcribes. */
export const liveModel = Effect.fnUntraced(function* (
  model: string | undefined,
  language: string | undefined,
) {
  const id =
    model ?? (yield* ModelRegistry).all().find(({ entry }) => entry.kind === "transcription")?.entry.id
  if (id === undefined) return yield* new ModelNotLoaded({ model: "" })
  const found = yield* findModel(id, "transcription")
  yield* checkLanguage(found, language)
  return found.entry
})

/**
 * Reserves the most that a session can cost. `charge` is called when the scope ends for any reason; the samples
 * that it returns are charged.
 */
export const payFor = Effect.fnUntraced(function* (
  caller: Principal,
  entry: ModelEntry,
  charged: () => number,
): Effect.fn.Return<
  { readonly more: Effect.Effect<void, PaymentRequired, Scope.Scope> },
  PaymentRequired,
  Scope.Scope | UsageLedger
> {
  const ledger = yield* UsageLedger
  const most = costOf(entry.price, audioUsage("transcription", longestSessionSeconds, 1))
  const notes = yield* CurrentRequest
  const reservation = yield* ledger.reserve(caller, most)
  notes.reserved(reservation)
  const used = () => audioUsage("transcription", charged(), listenRateHz)
  const leaveLimit = (yield* CurrentSpendingLimit)?.watch(() => costOf(entry.price, used()))
  yield* Effect.addFinalizer(() => {
    leaveLimit?.()
    if (charged() === 0) return ledger.cancel(reservation)
    const usage = used()
    const microDollars = costOf(entry.price, usage)
    return ledger.settle(reservation, { model: entry.id, usage, microDollars })
  })
  // Given back when the scope closes; the first reservation is settled with all that was used.
  return { more: Effect.asVoid(ledger.reserve(caller, most)) }
})

/**
 * What a session is charged for: all audio it received, unless it failed on this side. Then the audio that was covered by
 * events to the client.
 */
export const chargedSamples = (session: LiveSession<LiveError>, failed: boolean): number =>
  failed ? Math.min(session.samples, msToSamples(session.hypothesis.audioMs, listenRateHz)) : session.samples

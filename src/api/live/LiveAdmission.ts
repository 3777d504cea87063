// Admission and price of a live session: everything that is decided before a WebSocket is answered, and the
// receipt at its end. Knows neither events nor frames.
import { Context, type Duration, Effect, Scope } from "effect"
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
import { type Reservation, UsageLedger } from "#store/ledger/UsageLedger.ts"
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
 * Time after which a session that goes on is charged for its audio so far: a node that is killed loses no more than that. A guess, below
 * the ten minutes after which a dead node's leases end. Tests shorten it.
 */
export const SettleEvery = Context.Reference<Duration.Input>("edgewise/api/SettleEvery", {
  defaultValue: () => "5 minutes",
})

/**
 * Reserves the most that a session can cost. When the scope ends for any reason, the samples that `charged` gives are charged. A session
 * that is longer than `SettleEvery` has a receipt for each such part; all together are what one for all of it would be. `certain`: samples
 * that are charged however the session ends, so that nothing is charged before that is not owed.
 */
export const payFor = Effect.fnUntraced(function* (
  caller: Principal,
  entry: ModelEntry,
  charged: () => number,
  certain: () => number,
): Effect.fn.Return<
  { readonly more: Effect.Effect<void, PaymentRequired> },
  PaymentRequired,
  Scope.Scope | UsageLedger
> {
  const ledger = yield* UsageLedger
  const costOfSamples = (samples: number) =>
    costOf(entry.price, audioUsage("transcription", samples, listenRateHz))
  // Closed after the session's last charge, which the scope of the session would close before.
  const money = yield* Effect.acquireRelease(Scope.make(), Scope.close)
  let reservedSamples = 0
  let settledSamples = 0
  /** Those that are open. */
  let held: ReadonlyArray<Reservation> = []
  /** Reserves the price of the audio up to `samples` beyond what was settled. */
  const reserve = (samples: number, before: number) =>
    Effect.map(
      Scope.provide(ledger.reserve(caller, costOfSamples(samples) - costOfSamples(before)), money),
      (reservation) => {
        reservedSamples = Math.max(reservedSamples, samples)
        return reservation
      },
    )
  const more = Effect.suspend(() =>
    Effect.map(
      reserve(reservedSamples + longestSessionSeconds * listenRateHz, reservedSamples),
      (reservation) => {
        held = [...held, reservation]
        return reservation
      },
    ),
  ).pipe(Effect.uninterruptible)
  const notes = yield* CurrentRequest
  notes.reserved(yield* more)

  const owed = (samples: number) => costOfSamples(samples) - costOfSamples(settledSamples)
  const leaveLimit = (yield* CurrentSpendingLimit)?.watch(() => owed(Math.max(settledSamples, charged())))
  /** Charges the audio up to `samples` that was not charged yet, and closes what is reserved. */
  const settle = (samples: number) =>
    Effect.suspend(() => {
      const [first, ...others] = held
      held = []
      if (first === undefined) return Effect.void
      if (samples <= settledSamples)
        return Effect.forEach([first, ...others], ledger.cancel, { discard: true })
      const usage = audioUsage("transcription", samples, listenRateHz)
      const { audioMs } = audioUsage("transcription", settledSamples, listenRateHz)
      const settlement = {
        model: entry.id,
        usage: { ...usage, audioMs: usage.audioMs - audioMs },
        microDollars: owed(samples),
      }
      settledSamples = samples
      return Effect.andThen(
        ledger.settle(first, settlement),
        Effect.forEach(others, ledger.cancel, { discard: true }),
      )
    })
  yield* Effect.addFinalizer(() => {
    leaveLimit?.()
    return settle(charged())
  })
  const part = Effect.gen(function* () {
    const samples = certain()
    if (samples <= settledSamples) return
    const next = yield* reserve(Math.max(reservedSamples, samples), samples)
    yield* settle(samples)
    held = [next]
  }).pipe(
    // There is no money for both the part and what follows: the part is charged later.
    Effect.catchTag("PaymentRequired", () => Effect.void),
    Effect.uninterruptible,
  )
  yield* Effect.forkScoped(Effect.forever(Effect.delay(part, yield* SettleEvery)))
  return { more: Effect.asVoid(more) }
})

/**
 * What a session is charged for: all audio it received, unless it failed on this side. Then the audio that was covered by
 * events to the client.
 */
export const chargedSamples = (session: LiveSession<LiveError>, failed: boolean): number =>
  failed ? Math.min(session.samples, msToSamples(session.hypothesis.audioMs, listenRateHz)) : session.samples

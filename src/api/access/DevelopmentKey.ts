// The check of a development key after it was recognized: is it accepted from the address of the request? It applies to
// requests, WebSockets, session tokens and the session exchange.
import { Clock, Context, Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import type { DevKeyAccess } from "#domain/access/DevelopmentKey.ts"
import { isLocalCaller } from "#domain/access/Loopback.ts"
import { Unauthorized } from "#domain/wire/Errors.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { peerAddress, TrustedProxies } from "./RequestAddresses.ts"

/** At most one log line in this time; the next line has the number of refusals since. */
const logEveryMs = 1_000

type Check = (
  principal: Principal,
) => Effect.Effect<Principal, Unauthorized, HttpServerRequest.HttpServerRequest>

/** Why the key is refused, for the operator's log, with the setting that decides it. */
const reasons = {
  "not local": "the request does not come from this machine (EDGEWISE_DEV_KEY=loopback)",
  off: "EDGEWISE_DEV_KEY=off",
  "shared database": "nodes share a database, and EDGEWISE_DEV_KEY is not anywhere",
  "beyond loopback": "EDGEWISE_HOST is reachable from other machines, and EDGEWISE_DEV_KEY is not anywhere",
} as const

/** The answer to an unknown key: a caller cannot tell a refused development key from a wrong one. */
const refused = Effect.fail(new Unauthorized({ reason: "invalid-key" }))

/** Logs that a right credential was refused because of where the request comes from. */
export const refusalLog = (message: string) => {
  let loggedAtMs = Number.NEGATIVE_INFINITY
  let refusals = 0
  return (reason: string, peer: string): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
      refusals++
      if (nowMs - loggedAtMs < logEveryMs) return Effect.void
      const count = refusals
      loggedAtMs = nowMs
      refusals = 0
      return Effect.logWarning(message).pipe(Effect.annotateLogs({ reason, peer, count }))
    })
}

export const makeDevelopmentKeyCheck = (access: DevKeyAccess): Check => {
  const log = refusalLog("the development key was refused")

  const problemWith = (request: HttpServerRequest.HttpServerRequest) =>
    Effect.map(TrustedProxies, (isTrusted): keyof typeof reasons | undefined => {
      if (access.from === "anywhere") return undefined
      if (access.from === "nowhere") return access.because
      const caller = { headers: request.headers, peer: peerAddress(request) }
      return isLocalCaller(caller, isTrusted) ? undefined : "not local"
    })

  return (principal) => {
    if (!principal.development || access.from === "anywhere") return Effect.succeed(principal)
    return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(problemWith(request), (problem) =>
        problem === undefined
          ? Effect.succeed(principal)
          : Effect.andThen(log(reasons[problem], peerAddress(request)), refused),
      ),
    )
  }
}

/** Fails for a development key that is not accepted from where the current request comes; passes every other key. */
export const DevelopmentKeyCheck = Context.Reference<Check>("edgewise/api/DevelopmentKeyCheck", {
  defaultValue: () => makeDevelopmentKeyCheck({ from: "loopback" }),
})

// When the credential of an open socket ends: its key is revoked, or the session token that opened it expires. A request
// that is answered over HTTP began with a good credential and may finish; a socket would otherwise serve for ever.
import { Effect } from "effect"
import type { Accounts, Principal } from "#store/accounts/Accounts.ts"

export type CredentialEnd = "credential revoked" | "session token expired"

/** Calls `told` once, at most; what it returns ends the watch. */
export const onCredentialEnd = (
  accounts: Accounts["Service"],
  caller: Principal,
  told: (end: CredentialEnd) => void,
): (() => void) => {
  const { expiresAtMs } = caller
  const leave = accounts.onRevoked(caller, () => told("credential revoked"))
  if (expiresAtMs === undefined) return leave
  // A token lasts a day at most, which a timer can wait for.
  const timer = setTimeout(() => told("session token expired"), Math.max(0, expiresAtMs - Date.now()))
  timer.unref()
  return () => {
    clearTimeout(timer)
    leave()
  }
}

/** Completes at that moment, and never where it does not come. */
export const credentialEnds = (
  accounts: Accounts["Service"],
  caller: Principal,
): Effect.Effect<CredentialEnd> =>
  Effect.callback((resume) =>
    Effect.sync(onCredentialEnd(accounts, caller, (end) => resume(Effect.succeed(end)))),
  )

// When the credential of an open socket ends: its key is revoked, or the session token that opened it expires. A
// request over HTTP began with a valid credential and may finish; a socket would otherwise be served for ever.
import { Effect } from "effect"
import type { Accounts, Principal } from "#store/accounts/Accounts.ts"

export type CredentialEnd = "credential revoked" | "session token expired"

/** Calls `told` at most once; the returned function ends the watch. */
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

/** Completes when the credential ends; never completes for one that does not end. */
export const credentialEnds = (
  accounts: Accounts["Service"],
  caller: Principal,
): Effect.Effect<CredentialEnd> =>
  Effect.callback((resume) =>
    Effect.sync(onCredentialEnd(accounts, caller, (end) => resume(Effect.succeed(end)))),
  )

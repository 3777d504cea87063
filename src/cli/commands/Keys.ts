// `edgewise keys`: makes, lists and revokes API keys. Works on the store, also while a node runs on it.

import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { table } from "#domain/process/Columns.ts"
import { accountNameRule, isAccountName } from "#store/accounts/AccountName.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { storeLayerFromEnvironment } from "#store/Store.ts"
import { isoTime, jsonFlag, orgFlag, printJson } from "../shared/Output.ts"

const create = Command.make(
  "create",
  {
    org: orgFlag,
    scope: Flag.Literals("scope", ["read-write", "superadmin"]).pipe(
      Flag.withDescription(
        "What the key may do; superadmin may also load and unload models; default: read-write",
      ),
      Flag.withDefault("read-write"),
    ),
    user: Flag.String("user").pipe(
      Flag.filter(isAccountName, () => accountNameRule),
      Flag.withMetavar("NAME"),
      Flag.withDescription("User the key belongs to, with a rate limit of its own; default: default"),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  Effect.fn(function* ({ org, scope, user, json }) {
    const named = Option.isSome(user) ? { user: user.value } : {}
    const key = yield* (yield* Accounts).createKey({ org, scope, ...named })
    if (json) {
      return yield* printJson({
        api_key: key.apiKey,
        key_id: key.keyId,
        org: key.org,
        user: key.user,
        scope: key.scope,
      })
    }
    // Only the key on standard output, so that `KEY=$(edgewise keys create …)` works.
    yield* Console.log(key.apiKey)
    yield* Console.error(
      `${key.keyId}, ${key.scope}, user ${key.user} of ${key.org}. The key is not shown again.`,
    )
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(Command.withDescription("Create an API key, and its organization with 5 USD if it does not exist"))

const list = Command.make(
  "list",
  { org: orgFlag, json: jsonFlag },
  Effect.fn(function* ({ org, json }) {
    const keys = (yield* (yield* Accounts).listKeys(org)).map((key) => ({
      key_id: key.keyId,
      prefix: key.prefix,
      user: key.user,
      scope: key.scope,
      created_at: isoTime(key.createdAtMs),
      revoked_at: key.revokedAtMs === undefined ? null : isoTime(key.revokedAtMs),
    }))
    if (json) return yield* printJson({ org, keys })
    const heading = ["key_id", "prefix", "user", "scope", "created_at", "revoked_at"]
    const rows = keys.map((key) => Object.values(key).map((value) => value ?? "-"))
    yield* Console.log(keys.length === 0 ? "no keys" : table(heading, rows))
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(Command.withDescription("List ids and prefixes of an organization's keys"))

const revoke = Command.make(
  "revoke",
  {
    keyId: Argument.String("KEY_ID").pipe(Argument.withDescription("As `keys list` shows it")),
    json: jsonFlag,
  },
  Effect.fn(function* ({ keyId, json }) {
    const { revokedAtMs } = yield* (yield* Accounts).revokeKey(keyId)
    const revoked_at = isoTime(revokedAtMs)
    yield* json ? printJson({ key_id: keyId, revoked_at }) : Console.log(`${keyId} revoked at ${revoked_at}`)
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(Command.withDescription("Revoke a key; running nodes refuse it within 5 seconds"))

export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([create, list, revoke]),
)

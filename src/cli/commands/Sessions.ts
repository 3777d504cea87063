// `edgewise sessions`: the key that signs session tokens. Works on the data directory or on the nodes' shared database,
// also while nodes run on it.
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { load } from "#config/Config.ts"
import { storeLayerFromEnvironment } from "#store/Store.ts"
import { rotateSharedSigningKeys, rotateSigningKeys } from "#store/signing/SigningKeys.ts"
import { isoTime, jsonFlag, printJson, switchFlag } from "../shared/Output.ts"

const rotate = Command.make(
  "rotate",
  {
    endAll: switchFlag("end-all", "Delete every other key: all tokens issued so far end at once"),
    json: jsonFlag,
  },
  Effect.fn(function* ({ endAll, json }) {
    const { databaseUrl, dataDir } = yield* load({})
    const { activeAtMs, kid } = yield* databaseUrl === ""
      ? rotateSigningKeys(dataDir, { endAll })
      : Effect.provide(rotateSharedSigningKeys({ endAll }), storeLayerFromEnvironment)
    const active_at = isoTime(activeAtMs)
    if (json) return yield* printJson({ kid, active_at, ended_all: endAll })
    yield* Console.log(`${kid} signs from ${active_at}${endAll ? "; all earlier tokens have ended" : ""}`)
  }),
).pipe(Command.withDescription("Make the next signing key now; tokens of the current one stay valid"))

export const sessions = Command.make("sessions").pipe(
  Command.withDescription("Session tokens"),
  Command.withSubcommands([rotate]),
)

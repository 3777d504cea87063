// The credential for a node's first requests: the development key if the settings accept one, and the lines about it
// that the start prints.
import { resolve } from "node:path"
import { Effect } from "effect"
import { type Config, settings } from "#config/Settings.ts"
import type { DevKeyAccess } from "#domain/access/DevelopmentKey.ts"
import { formatUsd } from "#domain/models/Money.ts"
import { type DevelopmentKey, developmentKey, hasDevelopmentKey } from "#store/accounts/DevKey.ts"
import { quoted } from "./CurlLine.ts"
import { developmentKeyAccess } from "./NodeLayer.ts"

export interface FirstCredential {
  readonly access: DevKeyAccess
  /** The accepted key. Undefined if there is none. */
  readonly key: DevelopmentKey | undefined
  /** True if the data directory holds a key from an earlier start that is refused now. */
  readonly refusesOldKey: boolean
}

export const firstCredential = Effect.fnUntraced(function* (config: Config) {
  const access = developmentKeyAccess(config)
  const credential: FirstCredential =
    access.from === "nowhere"
      ? { access, key: undefined, refusesOldKey: yield* hasDevelopmentKey(config.dataDir) }
      : { access, key: yield* developmentKey(config.dataDir), refusesOldKey: false }
  return credential
})

/** Why there is no key, and the setting to change for one. */
const reasonOf = ({ access }: FirstCredential, { host }: Config): string => {
  if (access.from !== "nowhere") return "it was revoked, or the store has organizations of its own"
  switch (access.because) {
    case "off":
      return "EDGEWISE_DEV_KEY=off"
    case "shared database":
      return "nodes share the database (EDGEWISE_DEV_KEY=anywhere accepts a key nevertheless)"
    case "beyond loopback":
      return `other machines can reach ${host} (EDGEWISE_DEV_KEY=anywhere accepts a key nevertheless)`
  }
}

/** The command that makes a key in this node's store. For a shared database only the variable's name is shown. */
const createCommand = ({ dataDir, databaseUrl }: Config): string => {
  const command = "edgewise keys create --org acme"
  if (databaseUrl !== "") return `${command} (with EDGEWISE_DATABASE_URL set as for this node)`
  return dataDir === resolve(settings.dataDir.fallback)
    ? command
    : `EDGEWISE_DATA_DIR=${quoted(dataDir)} ${command}`
}

/** What an operator needs to know before the first request. */
export const credentialLines = (credential: FirstCredential, config: Config): ReadonlyArray<string> => {
  const { access, key, refusesOldKey } = credential
  if (key === undefined) {
    const reason = reasonOf(credential, config)
    return [
      refusesOldKey ? `the development key is not accepted: ${reason}` : `no development API key: ${reason}`,
      `make a key, and set it as KEY: ${createCommand(config)}`,
    ]
  }
  const { creditsMicroDollars, name, paymentMethod } = key.org
  const from = access.from === "anywhere" ? "from every address" : "from this machine only"
  const left = paymentMethod ? "is invoiced" : `has ${formatUsd(creditsMicroDollars)} USD of credits`
  return [
    `development API key: ${key.apiKey}`,
    `it is accepted ${from}; its organization ${name} ${left}` +
      (paymentMethod ? "" : ` (edgewise orgs credit ${name} 10 adds 10 USD)`),
  ]
}

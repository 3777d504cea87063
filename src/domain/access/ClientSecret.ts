// The form of a client secret, `ek_` and 192 random bits: a credential with a short life that a server makes for a browser, which
// opens conversations with it and nothing else. Pure; the random bytes come from the store.
import { base62 } from "./ApiKey.ts"

/** As of an API key. */
const digits = 33
const prefix = "ek_"
const shape = new RegExp(`^${prefix}[0-9A-Za-z]{${digits}}$`)

/** Makes the secret from `keyBytes` random bytes. */
export const clientSecretFrom = (random: Uint8Array): string => prefix + base62(random, digits)

/** True if a credential is meant as a client secret. */
export const looksLikeSecret = (credential: string): boolean => credential.startsWith(prefix)

/** True if it has the form of one. Others are refused without a query. */
export const isClientSecret = (credential: string): boolean => shape.test(credential)

// The form of an operator token, `op_`, the port of the node that it is for, and 256 random bits: the credential of people who may
// read the data directory of a running node. Pure; the random bytes come from the node.
import { base62 } from "./ApiKey.ts"

export const operatorTokenBytes = 32

/** Digits that hold 2^256: ceil(256 / log2(62)). */
const digits = 43
const prefix = "op_"

/** The port is in it so that commands send a token to no other node of the machine. */
export const operatorTokenFrom = (port: number, random: Uint8Array): string =>
  `${prefix}${port}_${base62(random, digits)}`

/** True if a credential is meant as an operator token. */
export const looksLikeOperatorToken = (credential: string): boolean => credential.startsWith(prefix)

/** Undefined for a text that is no operator token. */
export const portOfOperatorToken = (token: string): number | undefined => {
  const port = /^op_(\d{1,5})_[0-9A-Za-z]{43}$/.exec(token)?.[1]
  return port === undefined ? undefined : Number(port)
}

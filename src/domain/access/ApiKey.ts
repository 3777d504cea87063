// The shape of an API key and of what is kept of it: `svc_` and 192 random bits, of which the store sees a digest and
// a prefix only. Pure; the random bytes and the secret come from the store.
import { createHmac } from "node:crypto"

/** 192 bits: beyond guessing, so a fast keyed digest protects a stolen table as well as a slow hash would. */
export const keyBytes = 24

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** Digits that hold 2^192: ceil(192 / log2(62)). */
const keyDigits = 33
const shape = new RegExp(`^svc_[0-9A-Za-z]{${keyDigits}}$`)

/** `svc_` and eight digits. The 25 digits that stay secret are 148 bits. */
const prefixChars = 12

/** Base 62, most significant digit first: nothing to quote in a shell, and a double click takes all of it. */
export const base62 = (bytes: Uint8Array, digits: number): string => {
  let rest = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  let text = ""
  for (let i = 0; i < digits; i++) {
    text = alphabet.charAt(Number(rest % 62n)) + text
    rest /= 62n
  }
  return text
}

/** `keyBytes` random bytes → the key as its owner sees it, once. */
export const apiKeyFrom = (random: Uint8Array): string => `svc_${base62(random, keyDigits)}`

/** Whether a credential could be an API key at all; others are refused before any digest is computed. */
export const isApiKey = (credential: string): boolean => shape.test(credential)

/** What lists show of a key. */
export const prefixOf = (apiKey: string): string => apiKey.slice(0, prefixChars)

/** HMAC-SHA-256 of the key under the store's secret, lower-case hex. */
export const digestOf = (secret: Uint8Array, apiKey: string): string =>
  createHmac("sha256", secret).update(apiKey).digest("hex")

// The form of an API key, `svc_` and 192 random bits, and what is stored of it: a digest and a prefix. Pure; the random
// bytes and the secret come from the store.
import { createHmac } from "node:crypto"

/** 192 bits cannot be guessed, so a fast keyed digest protects a stolen table as well as a slow hash would. */
export const keyBytes = 24

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** Digits that hold 2^192: ceil(192 / log2(62)). */
const keyDigits = 33
const shape = new RegExp(`^svc_[0-9A-Za-z]{${keyDigits}}$`)

/** `svc_` and eight digits. The 25 secret digits are 148 bits. */
const prefixChars = 12

/** Base 62, most significant digit first. It needs no quoting in a shell, and a double click selects all of it. */
export const base62 = (bytes: Uint8Array, digits: number): string => {
  let rest = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  let text = ""
  for (let i = 0; i < digits; i++) {
    text = alphabet.charAt(Number(rest % 62n)) + text
    rest /= 62n
  }
  return text
}

/** Makes the key, which its owner sees once, from `keyBytes` random bytes. */
export const apiKeyFrom = (random: Uint8Array): string => `svc_${base62(random, keyDigits)}`

/** True if a credential has the form of an API key. Others are refused without computing a digest. */
export const isApiKey = (credential: string): boolean => shape.test(credential)

/** The part of a key that lists show. */
export const prefixOf = (apiKey: string): string => apiKey.slice(0, prefixChars)

/** HMAC-SHA-256 of the key under the store's secret, lower-case hex. */
export const digestOf = (secret: Uint8Array, apiKey: string): string =>
  createHmac("sha256", secret).update(apiKey).digest("hex")

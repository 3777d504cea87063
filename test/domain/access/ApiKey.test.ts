import { createHmac, randomBytes } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { apiKeyFrom, base62, digestOf, isApiKey, keyBytes, prefixOf } from "#domain/access/ApiKey.ts"

const bytes = fc.uint8Array({ minLength: keyBytes, maxLength: keyBytes })

describe("ApiKey", () => {
  it("carries 192 bits and gives each its own key", () => {
    expect(keyBytes * 8).toBe(192)
    const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    fc.assert(
      fc.property(bytes, (random) => {
        const key = apiKeyFrom(random)
        const digits = [...key.slice(4)].reduce((n, digit) => n * 62n + BigInt(alphabet.indexOf(digit)), 0n)
        return isApiKey(key) && digits === BigInt(`0x${Buffer.from(random).toString("hex")}`)
      }),
    )
  })

  it("has one length, from the smallest number to the largest", () => {
    expect(apiKeyFrom(new Uint8Array(keyBytes))).toBe(`svc_${"0".repeat(33)}`)
    expect(isApiKey(apiKeyFrom(new Uint8Array(keyBytes).fill(255)))).toBe(true)
    expect(base62(new Uint8Array([61]), 2)).toBe("0z")
  })

  it("shows a prefix that leaves most of the key unknown", () => {
    const key = apiKeyFrom(randomBytes(keyBytes))
    expect(key.startsWith(prefixOf(key))).toBe(true)
    expect(prefixOf(key)).toHaveLength(12)
  })

  it.each([
    "",
    "svc_",
    "svc_short",
    `sk_${"a".repeat(33)}`,
    `svc_${"a".repeat(34)}`,
    `svc_${"a".repeat(32)}-`,
    `svc_${"a".repeat(33)}\n`,
  ])("refuses %j by its shape", (text) => expect(isApiKey(text)).toBe(false))

  it("digests by HMAC-SHA-256 under the secret", () => {
    const key = apiKeyFrom(new Uint8Array(keyBytes).fill(7))
    const secret = new Uint8Array(32).fill(1)
    expect(digestOf(secret, key)).toBe(createHmac("sha256", secret).update(key).digest("hex"))
    expect(digestOf(new Uint8Array(32).fill(2), key)).not.toBe(digestOf(secret, key))
  })
})

// Rotation of signing keys over made-up lives of a service: no valid token is ever without its published key.
import fc from "fast-check"
import { expect, it } from "vitest"
import {
  announceMs,
  clockSkewMs,
  keySetAgeSeconds,
  maxSessionMs,
  nextKeyActiveAtMs,
  publishedKeys,
  signingKey,
} from "#domain/access/SigningSchedule.ts"

interface Key {
  readonly kid: number
  readonly activeAtMs: number
}

const dayMs = 24 * 60 * 60 * 1000
const rotateEveryMs = 30 * dayMs

/** A service that reads its keys at irregular times, some of them weeks apart, and rotates on request now and then. */
const life = fc.array(
  fc.record({
    afterMs: fc.oneof(
      fc.nat({ max: announceMs * 2 }),
      fc.nat({ max: 3 * dayMs }),
      fc.nat({ max: 100 * dayMs }),
    ),
    told: fc.boolean(),
  }),
  { minLength: 1, maxLength: 60, size: "max" },
)

it("loses no valid token and surprises no edge, however keys are rotated", () => {
  fc.assert(
    fc.property(life, (steps) => {
      let keys: ReadonlyArray<Key> = []
      let nowMs = 1_700_000_000_000
      const announcedAtMs = new Map<number, number>()
      const tokens: Array<{ readonly kid: number; readonly expMs: number }> = []
      for (const { afterMs, told } of steps) {
        nowMs += afterMs
        keys = publishedKeys(keys, nowMs)
        const activeAtMs = nextKeyActiveAtMs(keys, nowMs, told ? 0 : rotateEveryMs)
        if (activeAtMs !== undefined) {
          const kid = announcedAtMs.size
          announcedAtMs.set(kid, nowMs)
          keys = [...keys, { kid, activeAtMs }]
        }
        const signer = signingKey(keys, nowMs)!
        // The very first key could not be published beforehand.
        if (signer.kid > 0)
          expect(nowMs - announcedAtMs.get(signer.kid)!).toBeGreaterThanOrEqual(keySetAgeSeconds * 1000)
        tokens.push({ kid: signer.kid, expMs: nowMs + maxSessionMs })
        const published = new Set(publishedKeys(keys, nowMs).map((key) => key.kid))
        for (const token of tokens)
          if (nowMs < token.expMs + clockSkewMs) expect(published).toContain(token.kid)
      }
    }),
    { numRuns: 500 },
  )
})

it("keeps a bounded number of keys, and replaces each at its age", () => {
  let keys: ReadonlyArray<Key> = []
  let made = 0
  for (let day = 0; day < 365; day += 0.25) {
    const nowMs = day * dayMs
    keys = publishedKeys(keys, nowMs)
    const activeAtMs = nextKeyActiveAtMs(keys, nowMs, rotateEveryMs)
    if (activeAtMs !== undefined) keys = [...keys, { kid: made++, activeAtMs }]
    expect(keys.length).toBeLessThanOrEqual(3)
  }
  expect(made).toBe(13)
})

it("a clock that is set back still finds a key to sign with", () => {
  expect(signingKey([{ activeAtMs: 100 }, { activeAtMs: 200 }], 50)).toEqual({ activeAtMs: 100 })
  expect(signingKey([], 50)).toBeUndefined()
})

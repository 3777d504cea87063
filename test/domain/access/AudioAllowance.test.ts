// What the sockets of a user may send: each 120 s at once and three times real time, and no more by opening sockets in turn.
import { expect, it } from "vitest"
import { AudioAllowances } from "#domain/access/AudioAllowance.ts"

const second = 1_000

/** Seconds of audio that sockets opened one after another take, each all that it may, in so many seconds. */
const inTurn = (sockets: number, seconds: number): number => {
  const allowances = new AudioAllowances()
  let taken = 0
  for (let i = 0; i < sockets; i++) {
    const nowMs = (i / sockets) * seconds * second
    const bucket = allowances.enter("u", nowMs)
    const can = bucket.available(nowMs)
    bucket.spend(can, nowMs)
    taken += can
    allowances.leave("u", bucket, nowMs)
  }
  expect(allowances.remembered).toBe(1)
  return taken
}

it("a thousand sockets in turn within a minute send what one socket may", () => {
  expect(inTurn(1_000, 60)).toBeLessThanOrEqual(120 + 3 * 60)
})

it("sockets at the same time have 120 s each", () => {
  const allowances = new AudioAllowances()
  const buckets = Array.from({ length: 20 }, () => allowances.enter("u", 0))
  expect(buckets.every((bucket) => bucket.spend(120, 0))).toBe(true)
  expect(buckets.some((bucket) => bucket.spend(1, 0))).toBe(false)
})

it("a socket goes on with the largest allowance that its user has left, and with no other user's", () => {
  const allowances = new AudioAllowances()
  const [first, other, third] = [allowances.enter("u", 0), allowances.enter("u", 0), allowances.enter("v", 0)]
  first.spend(100, 0)
  other.spend(50, 0)
  allowances.leave("u", first, 0)
  allowances.leave("u", other, 0)
  allowances.leave("v", third, 0)
  expect(allowances.enter("u", 0).available(0)).toBe(70)
  expect(allowances.enter("u", 0).available(0)).toBe(20)
  expect(allowances.enter("u", 0).available(0)).toBe(120)
})

it("remembers no allowance that is full", () => {
  const allowances = new AudioAllowances()
  for (let i = 0; i < 1_000; i++) {
    const bucket = allowances.enter(`user ${i}`, i * second)
    bucket.spend(120, i * second)
    allowances.leave(`user ${i}`, bucket, i * second)
  }
  expect(allowances.remembered).toBeLessThanOrEqual(41)
})

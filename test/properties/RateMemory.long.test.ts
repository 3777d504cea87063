// Very many users cost a bounded amount of memory, and none a window later. In bytes of V8's heap, after collections.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "vitest"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import { SlidingWindowLimiter } from "#domain/access/SlidingWindowLimiter.ts"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const heapBytes = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}

/** The default limit. It fills a table of 2^20 places. */
const users = 1_000_000
const addresses = users / 10
/** What may be left when nothing is remembered. */
const leftMegabytes = 20
const megabyte = 1024 * 1024

/** Ids as long as those of the store. */
const userId = (index: number): string => `user_${String(index).padStart(17, "0")}`

describe(`${users} users`, () => {
  it("with a request each cost at most 320 bytes apiece, their names included, and later nothing", () => {
    const window = new SlidingWindowLimiter({ limit: 100, maxUsers: users })
    const before = heapBytes()
    let admitted = 0
    for (let i = 0; i < users; i++) if (window.admit(userId(i), (i / users) * 10_000).admitted) admitted++
    const grown = heapBytes() - before
    expect([admitted, window.users]).toEqual([users, users])
    expect(grown).toBeLessThan(320 * users)
    // One more is refused; no known user is removed.
    expect(window.admit("one more", 10_000).admitted).toBe(false)
    window.admit(userId(0), 200_000)
    expect(window.users).toBe(1)
    expect(heapBytes() - before).toBeLessThan(leftMegabytes * megabyte)
  })

  it("that guess at credentials fill a table of a fixed size", () => {
    const failures = new GcraLimiter({ burst: 300, forgiveMs: 200, maxAddresses: addresses })
    const before = heapBytes()
    let most = 0
    for (let i = 0; i < users; i++) {
      failures.failed(`2001:db8:${(i >> 16).toString(16)}:${i & 0xffff}`, (i / users) * 1_000)
      most = Math.max(most, failures.addresses)
    }
    expect(most).toBe(addresses)
    expect(heapBytes() - before).toBeLessThan(leftMegabytes * megabyte)
  })
})

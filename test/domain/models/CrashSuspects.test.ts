// Which user is held to have crashed an engine: in any history, the user that was always present is found while others
// are served.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { CrashSuspects } from "#domain/models/CrashSuspects.ts"

const users = ["a", "b", "c", "d", "e", "f", "g", "h"]
const attacker = "attacker"

describe("crashes", () => {
  it("of one user alone cost the engine one restart, and the user is refused at the second", () => {
    const suspects = new CrashSuspects()
    expect(suspects.crashed([attacker, attacker], 1_000)).toEqual({ guilty: undefined, counts: true })
    expect(suspects.refusedForMs(attacker, 1_000)).toBe(0)
    expect(suspects.crashed([attacker], 2_000)).toEqual({ guilty: attacker, counts: false })
    expect(suspects.refusedForMs(attacker, 2_000)).toBe(60_000)
    expect(suspects.refusedForMs(attacker, 61_999)).toBe(1)
    expect(suspects.refusedForMs(attacker, 62_000)).toBe(0)
    expect(suspects.crashed([attacker], 62_000)).toEqual({ guilty: attacker, counts: false })
    expect(suspects.refusedForMs(attacker, 62_000)).toBe(120_000)
  })

  it("count where no user was served, and where every user is new", () => {
    const suspects = new CrashSuspects()
    for (let n = 0; n < 5; n++) {
      expect(suspects.crashed([], n)).toEqual({ guilty: undefined, counts: true })
      expect(suspects.crashed([""], n)).toEqual({ guilty: undefined, counts: true })
      expect(suspects.crashed([`user-${n}`, `other-${n}`], n)).toEqual({ guilty: undefined, counts: true })
    }
  })

  it("are forgotten", () => {
    const suspects = new CrashSuspects()
    suspects.crashed([attacker], 0)
    expect(suspects.isEmpty).toBe(false)
    expect(suspects.crashed([attacker], 1_800_000)).toEqual({ guilty: undefined, counts: true })
  })

  it("find the user that caused them at the second crash, among any others, where suspects are not served together", () => {
    fc.assert(
      fc.property(
        fc.subarray(users),
        fc.subarray(users),
        fc.integer({ min: 1, max: 14_999 }),
        (beside, later, afterMs) => {
          const suspects = new CrashSuspects()
          suspects.crashed([...beside, attacker], 0)
          for (const user of [...beside, attacker]) expect(suspects.isOnProbation(user, afterMs)).toBe(true)
          // actors/engine/SlotScheduler ensures this: no two suspects run at once.
          const present = later.filter((user) => !suspects.isOnProbation(user, afterMs))
          expect(suspects.crashed([...present, attacker], afterMs)).toEqual({
            guilty: attacker,
            counts: false,
          })
          for (const user of users) expect(suspects.refusedForMs(user, afterMs)).toBe(0)
        },
      ),
    )
  })

  it("take one of an engine's restarts at most from one user, for any others that are there and however long it goes on", () => {
    const crash = fc.record({ beside: fc.subarray(users), pauseMs: fc.nat(100_000) })
    fc.assert(
      fc.property(fc.array(crash, { maxLength: 40 }), (crashes) => {
        const suspects = new CrashSuspects()
        let nowMs = 0
        let counted = 0
        for (const { beside, pauseMs } of crashes) {
          nowMs += Math.min(pauseMs, 1_700_000)
          // The attacker waits until it is served again.
          nowMs += suspects.refusedForMs(attacker, nowMs)
          const present = beside.filter(
            (user) => !suspects.isOnProbation(user, nowMs) && suspects.refusedForMs(user, nowMs) === 0,
          )
          if (suspects.crashed([...present, attacker], nowMs).counts) counted++
        }
        expect(counted).toBeLessThanOrEqual(1)
      }),
    )
  })

  it("of ever new users keep a bounded table", () => {
    const suspects = new CrashSuspects()
    for (let n = 0; n < 20_000; n++) suspects.crashed([`user-${n}`], n)
    expect(suspects.isOnProbation("user-0", 20_000)).toBe(false)
    expect(suspects.crashed(["user-0"], 20_000).counts).toBe(true)
    expect(suspects.crashed(["user-19999"], 20_000).guilty).toBe("user-19999")
  })
})

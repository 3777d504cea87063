// The queue of waiting requests: bounded, fair by user, with accurate estimates of the wait.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { FairQueue, type Place } from "#domain/queues/FairQueue.ts"

interface Job {
  readonly user: string
  readonly n: number
}

const users = ["a", "b", "c", "d"] as const
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("join" as const), user: fc.constantFrom(...users) }) },
  fc.record({ do: fc.constant("background" as const) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant("shift" as const), background: fc.boolean() }) },
  fc.record({ do: fc.constant("leave" as const), nth: fc.nat(20) }),
)

const interactive = (user: string): Place => ({ user, urgency: "interactive", continues: false })
const background: Place = { user: "", urgency: "background", continues: false }
const only = { interactive: true, background: false }

/** A naive queue to compare with: lists by user, served round robin. */
class Naive {
  readonly waiting: Array<Job> = []
  readonly background: Array<Job> = []
  of = (user: string): Array<Job> => this.waiting.filter((job) => job.user === user)
}

it("never holds more than its limits, loses no request, and serves every user", () => {
  fc.assert(
    fc.property(fc.nat(6), fc.array(step, { maxLength: 80 }), (limit, steps) => {
      const line = new FairQueue<Job>(limit)
      const naive = new Naive()
      /** Times that others were served since a user began to wait or was served. */
      const passedBy = new Map<string, Map<string, number>>()
      let n = 0
      for (const one of steps) {
        if (one.do === "join") {
          const job = { user: one.user, n: n++ }
          const own = naive.of(one.user).length
          const longest = Math.max(0, ...users.map((user) => naive.of(user).length))
          const joined = line.join(job, interactive(one.user))
          const full = naive.waiting.length >= limit
          // Refused only where no user has more than its share.
          expect(joined.taken).toBe(!full || longest > own + 1)
          if (!joined.taken) continue
          if (own === 0) passedBy.set(one.user, new Map())
          naive.waiting.push(job)
          if (full) {
            expect(joined.displaced).toEqual(naive.of(joined.displaced!.user).at(-1))
            expect(naive.of(joined.displaced!.user)).toHaveLength(longest)
            naive.waiting.splice(naive.waiting.indexOf(joined.displaced!), 1)
          } else expect(joined.displaced).toBeUndefined()
        } else if (one.do === "background") {
          const job = { user: "", n: n++ }
          if (line.join(job, background).taken) naive.background.push(job)
        } else if (one.do === "shift") {
          const job = line.shift({ interactive: true, background: one.background })
          if (job === undefined) {
            expect(naive.waiting).toEqual([])
            expect(one.background && naive.background.length > 0).toBe(false)
          } else if (job.user === "") {
            expect([naive.waiting.length, naive.background.shift()]).toEqual([0, job])
          } else {
            // A user's own requests stay in order.
            expect(naive.of(job.user)[0]).toEqual(job)
            naive.waiting.splice(naive.waiting.indexOf(job), 1)
            for (const [user, passed] of passedBy) {
              if (user === job.user || naive.of(user).length === 0) continue
              const times = (passed.get(job.user) ?? 0) + 1
              passed.set(job.user, times)
              expect(times).toBe(1)
            }
            passedBy.set(job.user, new Map())
          }
        } else {
          const all = [...naive.waiting, ...naive.background]
          const job = all[one.nth]
          if (job === undefined) continue
          expect(line.leave(job)).toBe(true)
          expect(line.leave(job)).toBe(false)
          for (const list of [naive.waiting, naive.background]) {
            const index = list.indexOf(job)
            if (index >= 0) list.splice(index, 1)
          }
        }
        expect(line.length).toBe(naive.waiting.length + naive.background.length)
      }
      const left = line.clear()
      expect(new Set(left)).toEqual(new Set([...naive.waiting, ...naive.background]))
      expect([line.length, line.shift({ interactive: true, background: true })]).toEqual([0, undefined])
    }),
    { numRuns: 1_000 },
  )
})

it("puts live sessions first, and keeps every window of admitted work", () => {
  const urgency = fc.constantFrom("live" as const, "interactive" as const, "background" as const)
  const joining = fc.record({ urgency, continues: fc.boolean(), user: fc.constantFrom(...users) })
  fc.assert(
    fc.property(fc.nat(4), fc.array(joining, { maxLength: 60 }), (limit, places) => {
      const line = new FairQueue<Place>(limit)
      const waiting = new Set<Place>()
      for (const place of places) {
        const joined = line.join(place, place)
        if (place.urgency === "live" || (place.urgency === "interactive" && place.continues)) {
          expect(joined).toEqual({ taken: true, displaced: undefined })
        }
        if (!joined.taken) continue
        waiting.add(place)
        if (joined.displaced === undefined) continue
        expect(joined.displaced).toMatchObject({ urgency: "interactive", continues: false })
        waiting.delete(joined.displaced)
      }
      expect(line.length).toBe(waiting.size)
      // While interactive requests are held back, live sessions go on and background work does not overtake them.
      const held = line.shift({ interactive: false, background: true })
      const has = (kind: Place["urgency"]) => [...waiting].some((place) => place.urgency === kind)
      if (has("live")) expect(held?.urgency).toBe("live")
      else if (has("interactive")) expect(held).toBeUndefined()
      else expect(held?.urgency).toBe(has("background") ? "background" : undefined)
      if (held !== undefined) waiting.delete(held)
      // A session that keeps the engine busy yields once to an interactive request that has waited long enough.
      const first = line.shift({ interactive: true, background: false, interactiveFirst: true })
      if (has("interactive")) expect(first?.urgency).toBe("interactive")
      if (first !== undefined) waiting.delete(first)
      const rank = { live: 0, interactive: 1, background: 2 }
      const order: Array<number> = []
      for (;;) {
        const next = line.shift({ interactive: true, background: true })
        if (next === undefined) break
        expect(waiting.delete(next)).toBe(true)
        order.push(rank[next.urgency])
      }
      expect(order).toEqual(order.toSorted((a, b) => a - b))
      expect([waiting.size, line.length]).toEqual([0, 0])
    }),
  )
})

it("lets one user's flood wait, and no other user", () => {
  const line = new FairQueue<Job>(64)
  for (let n = 0; n < 64; n++) line.join({ user: "flood", n }, interactive("flood"))
  for (const user of ["b", "c"]) {
    for (let n = 0; n < 3; n++) {
      const joined = line.join({ user, n }, interactive(user))
      expect(joined).toMatchObject({ taken: true, displaced: { user: "flood" } })
    }
  }
  expect(line.join({ user: "flood", n: 99 }, interactive("flood")).taken).toBe(false)
  const served = Array.from({ length: 9 }, () => line.shift(only)!.user)
  expect(served).toEqual(["flood", "b", "c", "flood", "b", "c", "flood", "b", "c"])
})

describe("Retry-After", () => {
  /** Simulates the queue with `slots` at a time, each for exactly `holdMs`. Returns when the new request would be served. */
  const waitOf = (line: FairQueue<Job>, user: string, slots: number, holdMs: number): number => {
    const newcomer = { user, n: -1 }
    if (!line.join(newcomer, interactive(user)).taken) throw new Error("full")
    for (let served = 0; ; served++) {
      const job = line.shift(only)
      if (job === newcomer) return Math.ceil((served + 1) / slots) * holdMs
      if (job === undefined) throw new Error("lost")
    }
  }

  it("is when the newcomer would be served, by what requests have taken", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...users), { maxLength: 60 }),
        fc.constantFrom(...users),
        fc.integer({ min: 1, max: 16 }),
        fc.integer({ min: 100, max: 10_000 }),
        (waiting, user, slots, holdMs) => {
          const line = new FairQueue<Job>(1_000)
          for (let i = 0; i < 200; i++) line.observe(holdMs)
          for (const [n, each] of waiting.entries()) line.join({ user: each, n }, interactive(each))
          const said = line.retryAfterMs(slots, user)
          const truly = waitOf(line, user, slots, holdMs)
          if (truly > 300_000) return
          // Within one round, and never under the one second that limits the rate of retries.
          expect(said).toBeGreaterThanOrEqual(1_000)
          expect(Math.abs(said - Math.max(1_000, truly))).toBeLessThanOrEqual(holdMs + 1)
        },
      ),
    )
  })

  it("counts which user is next", () => {
    const line = new FairQueue<Job>(100)
    for (let i = 0; i < 200; i++) line.observe(1_000)
    for (const [n, user] of ["b", "c", "a", "a", "c"].entries()) line.join({ user, n }, interactive(user))
    // One of b's own, then c, a, and b again; before the new request of d goes the first one of every user.
    expect(line.retryAfterMs(1, "b")).toBeCloseTo(4_000)
    expect(line.retryAfterMs(1, "d")).toBeCloseTo(4_000)
    expect(line.retryAfterMs(1, "a")).toBeCloseTo(6_000)
  })

  it("follows a service that becomes slower or faster", () => {
    const line = new FairQueue<Job>(4)
    for (let i = 0; i < 40; i++) line.observe(20_000)
    expect(line.retryAfterMs(1, "a")).toBeGreaterThan(19_000)
    for (let i = 0; i < 60; i++) line.observe(2_000)
    expect(line.retryAfterMs(1, "a")).toBeLessThan(2_200)
    expect(line.retryAfterMs(1, "a")).toBeGreaterThanOrEqual(2_000)
  })
})

it("passes over requests that are held, which keep their places", () => {
  const line = new FairQueue<string>(8)
  for (const [job, user] of [
    ["a1", "a"],
    ["a2", "a"],
    ["b1", "b"],
  ] as const)
    line.join(job, { user, urgency: "interactive", continues: false })
  line.join("live", { user: "a", urgency: "live", continues: false })
  line.join("job", { user: "a", urgency: "background", continues: false })
  const all = { interactive: true, background: true }
  const isOfA = (job: string) => job !== "b1"
  expect(line.shift(all, isOfA)).toBe("b1")
  expect([line.shift(all, isOfA), line.length]).toEqual([undefined, 4])
  expect(["live", "a1", "a2", "job", undefined].map(() => line.shift(all))).toEqual([
    "live",
    "a1",
    "a2",
    "job",
    undefined,
  ])
})

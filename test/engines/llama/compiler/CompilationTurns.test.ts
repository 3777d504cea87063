// Whose grammar is compiled when: a simulation of two threads in milliseconds of a clock of its own.
import fc from "fast-check"
import { expect, it } from "vitest"
import { CompilationTurns } from "#engines/llama/compiler/CompilationTurns.ts"
import { runs } from "../../../support/groups/Runs.ts"

const terms = { minuteMs: 5_000, shareMs: 100 }
const threads = 2

interface Arrival {
  readonly user: string
  readonly atMs: number
  /** Processor time that it needs. */
  readonly costMs: number
}

interface Job extends Arrival {
  doneMs: number
  begunMs: number
  endedMs: number
}

/** What holds in each millisecond; `going`: the jobs that compute in it. */
type Check = (now: {
  readonly ms: number
  readonly running: ReadonlySet<Job>
  readonly going: ReadonlyArray<Job>
  readonly waiting: ReadonlyArray<Job>
  readonly isHeavy: (job: Job) => boolean
}) => void

/** Each thread has a processor of its own. The jobs in the order in which they began. */
const simulate = (arrivals: ReadonlyArray<Arrival>, check: Check = () => {}): ReadonlyArray<Job> => {
  const turns = new CompilationTurns<Job>(terms)
  const jobs = arrivals.map((arrival): Job => ({ ...arrival, doneMs: 0, begunMs: -1, endedMs: -1 }))
  const begun: Array<Job> = []
  const running = new Set<Job>()
  const most = Math.max(...jobs.map(({ atMs }) => atMs)) + jobs.reduce((sum, { costMs }) => sum + costMs, 1)
  for (let ms = 0; ms <= most && jobs.some(({ endedMs }) => endedMs < 0); ms++) {
    for (const job of jobs) if (job.atMs === ms) turns.join(job)
    while (running.size < threads) {
      const job = turns.shift(ms)
      if (job === undefined) break
      turns.begin(job)
      job.begunMs = ms
      running.add(job)
      begun.push(job)
    }
    const isHeavy = ({ user }: Job) => terms.minuteMs - turns.leftMs(user, ms) > terms.shareMs
    const going = [...running].filter((job) => !turns.isPaused(job, ms))
    const waiting = jobs.filter((job) => job.atMs <= ms && job.begunMs < 0)
    check({ ms, running, going, waiting, isHeavy })
    for (const job of going) {
      turns.used(job, ++job.doneMs)
      if (job.doneMs < job.costMs) continue
      job.endedMs = ms + 1
      running.delete(job)
      turns.end(job, job.doneMs, ms + 1)
    }
  }
  return begun
}

const arrival = (atMs: number, costMs: number) =>
  fc.record({
    user: fc.constantFrom("a", "b", "c", "d"),
    atMs: fc.nat(atMs),
    costMs: fc.integer({ min: 1, max: costMs }),
  })

it("compiles one grammar of a user at a time, one heavy user's at most, and none of those beside a light user's", () => {
  fc.assert(
    fc.property(fc.array(arrival(1_000, 300), { minLength: 1, maxLength: 20 }), (arrivals) => {
      const begun = simulate(arrivals, ({ going, isHeavy, running, waiting }) => {
        expect(new Set([...running].map(({ user }) => user)).size).toBe(running.size)
        const heavy = going.filter(isHeavy)
        expect(heavy.length).toBeLessThanOrEqual(going.length === heavy.length ? 1 : 0)
        // Something is compiled whenever something is to be compiled.
        if (running.size + waiting.length > 0) expect(going.length).toBeGreaterThan(0)
      })
      // All end, in no more time than they would one after the other.
      expect(begun).toHaveLength(arrivals.length)
      for (const { endedMs } of begun) expect(endedMs).toBeGreaterThan(0)
    }),
    { numRuns: runs(20, 200) },
  )
})

it("compiles a user's first grammar at once and undisturbed, whatever one other user has sent", () => {
  const flood = fc.array(fc.integer({ min: 100, max: 500 }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(flood, fc.nat(3_000), fc.integer({ min: 1, max: 50 }), (costs, atMs, costMs) => {
      const attack = costs.map((each) => ({ user: "attacker", atMs: 0, costMs: each }))
      const begun = simulate([...attack, { user: "new", atMs, costMs }], ({ going, isHeavy, running }) => {
        if ([...running].some(({ user }) => user === "new"))
          expect(going.filter(isHeavy).map(({ user }) => user)).toEqual([])
      })
      const own = begun.find(({ user }) => user === "new")
      expect([own?.begunMs, own?.endedMs]).toEqual([atMs, atMs + costMs])
    }),
    { numRuns: runs(30, 300) },
  )
})

it("leaves a thread to new users when several are heavy", () => {
  const attack = ["a", "b", "c"].flatMap((user) =>
    Array.from({ length: 10 }, () => ({ user, atMs: 0, costMs: 500 })),
  )
  fc.assert(
    fc.property(fc.integer({ min: 2_000, max: 10_000 }), (atMs) => {
      const own = simulate([...attack, { user: "new", atMs, costMs: 20 }]).find(({ user }) => user === "new")
      // By then the first grammars of all three, which none of them was heavy at, have been compiled.
      expect([own?.begunMs, own?.endedMs]).toEqual([atMs, atMs + 20])
    }),
    { numRuns: runs(5, 20) },
  )
})

it("serves heavy users in turn", () => {
  const users = ["a", "b", "c"]
  const attack = users.flatMap((user) => Array.from({ length: 6 }, () => ({ user, atMs: 0, costMs: 200 })))
  const order = simulate(attack).map(({ user }) => user)
  for (let at = 0; at < order.length; at += users.length)
    expect(new Set(order.slice(at, at + users.length)).size).toBe(users.length)
})

it("forgets in a minute what a user has compiled", () => {
  const turns = new CompilationTurns<Arrival>(terms)
  const job = { user: "a", atMs: 0, costMs: 1 }
  turns.begin(job)
  turns.used(job, 400)
  expect(turns.leftMs("a", 0)).toBe(4_600)
  turns.end(job, 500, 0)
  expect(turns.leftMs("a", 0)).toBe(4_500)
  expect(turns.leftMs("a", 3_000)).toBe(4_750)
  expect(turns.leftMs("a", 60_000)).toBe(5_000)
})

// Random histories of one device: claims that fit, wait, end and come twice, evictions, readings of the driver that come late or make no
// sense. What the test knows of each claim is kept apart from the state.
import fc from "fast-check"
import { expect, it } from "vitest"
import {
  type Answer,
  type DeviceEvent,
  type DeviceState,
  decide,
  freeOf,
  gpuState,
  hostState,
  promisedOf,
} from "#actors/device/DeviceState.ts"
import type { NvidiaGpu } from "#domain/models/NvidiaReport.ts"

const capacity = 100

const gpu = (totalBytes: number, freeBytes: number): NvidiaGpu => ({
  index: 0,
  uuid: "GPU-0",
  name: "a GPU",
  totalBytes,
  usedBytes: totalBytes - freeBytes,
  freeBytes,
  gpuPercent: 0,
  memoryPercent: 0,
  temperatureC: 40,
  mig: false,
})

const amount = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 0, max: 60 }) },
  { weight: 1, arbitrary: fc.constantFrom(-1, Number.NaN, Number.POSITIVE_INFINITY, 1e12) },
)
const measured = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 0, max: 60 }) },
  { weight: 1, arbitrary: fc.constantFrom(-1, Number.NaN) },
)
const id = fc.nat(1_000)

const event: fc.Arbitrary<DeviceEvent> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      is: fc.constant("claimed" as const),
      id,
      bytes: amount,
      rounds: fc.constantFrom(0, 2, 4),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      is: fc.constant("evicted" as const),
      id,
      freed: fc.constantFrom(true, true, true, false),
    }),
  },
  { weight: 2, arbitrary: fc.record({ is: fc.constant("settled" as const), id, bytes: measured }) },
  { weight: 4, arbitrary: fc.record({ is: fc.constant("released" as const), id }) },
  {
    weight: 2,
    arbitrary: fc.record({
      is: fc.constant("read" as const),
      atMs: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.constant(Number.NaN)),
      gpu: fc.option(
        fc
          .tuple(fc.constantFrom(capacity, capacity, 0, Number.NaN), fc.oneof(amount, fc.constant(capacity)))
          .map(([all, free]) => gpu(all, free)),
        { nil: undefined },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      is: fc.constant("used" as const),
      share: fc.constantFrom(0.1, 0.86, 0.93, 0.96, Number.NaN, -1),
    }),
  },
)

type Phase = "waits" | "counts" | "over"

/** What happened in all histories together, so that a property that never met a case is noticed. */
const met = { granted: 0, grantedLater: 0, refused: 0, free: 0, late: 0, nonsense: 0, ended: 0 }

const play = (first: DeviceState, events: ReadonlyArray<DeviceEvent>) => {
  let state = first
  const phases = new Map<number, Phase>()
  /** Claims whose memory is being freed at the moment. */
  const evicting = new Set<number>()
  const rounds = new Map<number, number>()
  let used = 0
  for (const raw of events) {
    // A claim gets a new number, and now and then comes a second time; the others mean one of those claims.
    const known = [...phases.keys()]
    const one = known[("id" in raw ? raw.id : 0) % Math.max(1, known.length)]
    const isAgain = raw.is === "claimed" && raw.id % 8 === 0 && one !== undefined
    const event: DeviceEvent =
      raw.is === "claimed"
        ? { ...raw, id: isAgain ? one : ++used }
        : "id" in raw
          ? { ...raw, id: one ?? raw.id }
          : raw
    if (event.is === "claimed" && phases.get(event.id) === "over") continue
    const before = state
    const [after, commands] = decide(before, event)
    state = after
    const answered = new Set<number>()
    for (const { answer, to } of commands) {
      // One answer to each claim, and only to claims under way.
      expect(answered.has(to)).toBe(false)
      answered.add(to)
      const isNew = event.is === "claimed" && event.id === to
      expect(phases.get(to)).toBe(isNew ? undefined : "waits")
      checkAnswer(answer, to)
    }
    if (event.is === "claimed" && !phases.has(event.id)) expect(answered.has(event.id)).toBe(true)
    if (event.is === "evicted") {
      // Where it still waits, it is asked again or refused.
      if (evicting.has(event.id) && phases.get(event.id) === "waits" && !answered.has(event.id))
        throw new Error("an eviction without an answer")
    }
    if (event.is === "released" && phases.has(event.id)) {
      if (phases.get(event.id) !== "over") met.ended++
      phases.set(event.id, "over")
      evicting.delete(event.id)
    }
    if (event.is === "read") {
      const isLate = !(event.atMs >= before.readAtMs)
      const isNonsense =
        event.gpu !== undefined && !(event.gpu.totalBytes >= event.gpu.freeBytes && event.gpu.freeBytes >= 0)
      if (isLate) met.late++
      if (isNonsense) met.nonsense++
      if (isLate || isNonsense) expect(after).toBe(before)
      else expect(after.reading?.gpu).toBe(event.gpu)
    }
    // The state and what the test knows are the same.
    expect([...state.claims.keys()].sort()).toEqual(
      [...phases].flatMap(([one, phase]) => (phase === "counts" ? [one] : [])).sort(),
    )
    expect(state.waiting.map((one) => one.id).sort()).toEqual(
      [...phases].flatMap(([one, phase]) => (phase === "waits" ? [one] : [])).sort(),
    )
    // What waits does not fit, unless it is being told so.
    for (const one of state.waiting)
      if (event.is !== "claimed" && event.is !== "evicted") expect(one.bytes).toBeGreaterThan(freeOf(state))
    expect(["calm", "lean", "busy", "full"]).toContain(state.pressure)

    function checkAnswer(answer: Answer, to: number) {
      const isNew = event.is === "claimed" && event.id === to
      switch (answer.is) {
        case "granted": {
          // Never over the device's memory: what was free before it is enough for it and for those that were granted with it.
          const bytes = state.claims.get(to)!.bytes
          const freeBefore = freeOf({ ...state, claims: withoutNew() })
          expect(bytes).toBeGreaterThanOrEqual(0)
          expect(bytes).toBeLessThanOrEqual(freeBefore)
          phases.set(to, "counts")
          if (isNew) met.granted++
          else met.grantedLater++
          return
        }
        case "refused":
          met.refused++
          phases.set(to, "over")
          evicting.delete(to)
          return
        case "free": {
          met.free++
          if (isNew) {
            phases.set(to, "waits")
            rounds.set(to, event.rounds)
          }
          // Asked once: again only after the one before has ended, and at most as often as it may.
          expect(evicting.has(to) && !(event.is === "evicted" && event.id === to)).toBe(false)
          evicting.add(to)
          rounds.set(to, rounds.get(to)! - 1)
          expect(rounds.get(to)).toBeGreaterThanOrEqual(0)
        }
      }
    }
    function withoutNew() {
      const granted = commands.filter(({ answer }) => answer.is === "granted").map(({ to }) => to)
      return new Map([...state.claims].filter(([one]) => !granted.includes(one)))
    }
    const newlyGranted = commands.filter(({ answer }) => answer.is === "granted").map(({ to }) => to)
    if (newlyGranted.length > 0) {
      const sum = newlyGranted.reduce((all, one) => all + state.claims.get(one)!.bytes, 0)
      expect(sum).toBeLessThanOrEqual(freeOf({ ...state, claims: withoutNew() }))
    }
    // Those that waited are served in the order of their arrival: nothing is granted to one that came later if the earlier would have fitted.
    const waitedBefore = before.waiting.map((one) => one.id)
    expect(newlyGranted.filter((one) => waitedBefore.includes(one))).toEqual(
      waitedBefore.filter((one) => newlyGranted.includes(one)),
    )
  }
  return state
}

it("never promises more than the device has, ends each claim once, serves in order and asks for each eviction once", () => {
  for (const first of [hostState(capacity), gpuState]) {
    fc.assert(
      fc.property(fc.array(event, { minLength: 10, maxLength: 60, size: "max" }), (events) => {
        const shown: ReadonlyArray<DeviceEvent> =
          first === gpuState ? [{ is: "read", gpu: gpu(capacity, capacity), atMs: 0 }, ...events] : events
        const last = play(first, shown)
        // Released one after the other, nothing is left.
        const all = [...last.claims.keys(), ...last.waiting.map((one) => one.id)]
        const end = all.reduce((state, one) => decide(state, { is: "released", id: one })[0], last)
        const left = [...end.claims.keys()].reduce(
          (state, one) => decide(state, { is: "released", id: one })[0],
          end,
        )
        expect([promisedOf(left), left.waiting]).toEqual([0, []])
      }),
      { numRuns: 150 },
    )
  }
  expect(Object.entries(met).filter(([, count]) => count < 20)).toEqual([])
})

it("lets a claim that fits pass those that wait, and gives freed memory to those that wait in their order", () => {
  const claimed = (id: number, bytes: number, rounds = 1): DeviceEvent => ({
    is: "claimed",
    id,
    bytes,
    rounds,
  })
  const answers: Array<string> = []
  const after = [
    claimed(1, 90),
    claimed(2, 50),
    claimed(3, 40),
    claimed(4, 10),
    { is: "released", id: 1 } as const,
  ].reduce((state, event) => {
    const [next, commands] = decide(state, event)
    for (const { answer, to } of commands) answers.push(`${to} ${answer.is}`)
    return next
  }, hostState(capacity))
  expect(answers).toEqual(["1 granted", "2 free", "3 free", "4 granted", "2 granted", "3 granted"])
  expect(promisedOf(after)).toBe(100)
})

it("counts on a GPU what others use, and what a model has not allocated yet", () => {
  const read = (free: number, atMs: number): DeviceEvent => ({ is: "read", gpu: gpu(100, free), atMs })
  const free = (events: ReadonlyArray<DeviceEvent>) =>
    freeOf(events.reduce((state, event) => decide(state, event)[0], gpuState))
  const claimed: DeviceEvent = { is: "claimed", id: 1, bytes: 40, rounds: 0 }
  expect(free([])).toBe(0)
  // Five hundredths are the driver's.
  expect(free([read(100, 0)])).toBe(95)
  expect(free([read(70, 0)])).toBe(70)
  expect(free([read(70, 0), claimed])).toBe(30)
  expect(free([read(70, 0), claimed, read(28, 1), { is: "settled", id: 1, bytes: 42 }])).toBe(28)
  // An older reading arrives late.
  expect(free([read(70, 5), read(10, 4)])).toBe(70)
  // The driver no longer shows it.
  expect(free([read(70, 5), { is: "read", gpu: undefined, atMs: 6 }])).toBe(0)
})

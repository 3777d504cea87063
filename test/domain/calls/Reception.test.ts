// What a sender is told of its packets: which share of them was lost since it was last told, whatever their order.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { Reception } from "#domain/calls/Reception.ts"

const at = (nth: number) => ({
  sequence: (65_500 + nth) & 0xffff,
  timestamp: (2 ** 32 - 5_000 + nth * 960) >>> 0,
})

it("tells the losses of each time between two reports, and of all", () => {
  const reception = new Reception()
  expect(reception.report(0)).toBeUndefined()
  for (let nth = 0; nth < 100; nth++) if (nth % 10 !== 5) reception.took(at(nth), nth * 20)
  expect(reception.report(2_000)).toMatchObject({ lostInAll: 10, newest: 65_599, jitter: 0 })
  for (let nth = 100; nth < 150; nth++) if (nth % 5 !== 2) reception.took(at(nth), nth * 20)
  const second = reception.report(3_000)!
  expect(second.lost).toBeCloseTo(0.2)
  expect(second.lostInAll).toBe(20)
  for (let nth = 150; nth < 200; nth++) reception.took(at(nth), nth * 20)
  expect(reception.report(4_000)?.lost).toBe(0)
})

it("knows order and jitter: packets that come late are no losses", () => {
  const delays = fc.array(fc.nat({ max: 100 }), { minLength: 2, maxLength: 100 })
  fc.assert(
    fc.property(delays, (all) => {
      const reception = new Reception()
      const arrivals = all
        .map((delayMs, nth) => ({ nth, atMs: nth === 0 ? 0 : nth * 20 + delayMs }))
        .toSorted((a, b) => a.atMs - b.atMs)
      for (const { atMs, nth } of arrivals) reception.took(at(nth), atMs)
      const report = reception.report(10_000)!
      expect(report).toMatchObject({ lost: 0, lostInAll: 0 })
      expect(report.jitter).toBeLessThanOrEqual(100 * 48)
    }),
  )
})

it("repeats the time of the sender's report, and how long ago it came", () => {
  const reception = new Reception()
  reception.took(at(0), 0)
  expect(reception.report(10)).toMatchObject({ lastReport: 0, sinceLastReport: 0 })
  reception.reported(0x1234_5678, 1_000)
  expect(reception.report(1_500)).toMatchObject({ lastReport: 0x1234_5678, sinceLastReport: 32_768 })
})

it("begins anew where the numbers jump", () => {
  const reception = new Reception()
  reception.took({ sequence: 10, timestamp: 0 }, 0)
  reception.took({ sequence: 30_000, timestamp: 960 }, 20)
  expect(reception.report(40)).toMatchObject({ lost: 0, lostInAll: 0, newest: 30_000 })
})

// Times and prices as the playground's receipts show them.
import { expect, it } from "vitest"
import { dollars, duration, serverTiming } from "../../../src/web/api/Receipts.js"

it("reads the steps of Server-Timing", () => {
  expect(serverTiming("auth;dur=1.34, queue;dur=5.9, total;dur=11.08")).toEqual({
    auth: 1.34,
    queue: 5.9,
    total: 11.08,
  })
  expect(serverTiming('miss;desc="a", db;desc="x";dur=2')).toEqual({ db: 2 })
  expect(serverTiming(null)).toEqual({})
})

it("shows micro-dollars exactly, and whole cents with two digits", () => {
  expect([9, 537, 1_000_000, 99_998_211, 5_000_000, 120_000, 0, -250_000].map(dollars)).toEqual([
    "0.000009 USD",
    "0.000537 USD",
    "1.00 USD",
    "99.998211 USD",
    "5.00 USD",
    "0.12 USD",
    "0.00 USD",
    "-0.25 USD",
  ])
})

it("shows milliseconds, then seconds", () => {
  expect([undefined, 0.4, 21.6, 999, 1_234, 12_340].map(duration)).toEqual([
    "–",
    "0 ms",
    "22 ms",
    "999 ms",
    "1.23 s",
    "12.3 s",
  ])
})

// Money: written amounts are read back unchanged, and every price rounds in the stated direction.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { costOf, formatUsd, maxMicroDollars, parseUsd } from "#domain/models/Money.ts"
import { audioUsage, textUsage } from "#domain/models/Usage.ts"

const microDollars = fc.integer({ min: 0, max: maxMicroDollars })
/** Up to 10,000 USD per million tokens or minute. */
const price = fc.integer({ min: 0, max: 10_000_000_000 })
const tokens = fc.integer({ min: 0, max: 100_000_000 })

/** Exact rational arithmetic as the model: is `cost` the least integer that is not below numerator / denominator? */
const isCeiling = (cost: number, numerator: bigint, denominator: bigint): boolean => {
  const scaled = BigInt(cost) * denominator
  return scaled >= numerator && scaled - denominator < numerator
}

describe("amounts", () => {
  it("reads back what it writes, exactly", () => {
    fc.assert(fc.property(microDollars, (amount) => parseUsd(formatUsd(amount)) === amount))
  })

  it("keeps the order of amounts and their sums through text", () => {
    const cents = fc.integer({ min: 0, max: 1_000_000 })
    fc.assert(
      fc.property(fc.array(cents, { maxLength: 30, size: "max" }), (parts) => {
        const read = parts.map((cent) => parseUsd((cent / 100).toFixed(2)) ?? Number.NaN)
        return read.reduce((a, b) => a + b, 0) === parts.reduce((a, b) => a + b, 0) * 10_000
      }),
    )
  })

  it.each([
    ["5", 5_000_000],
    ["0.25", 250_000],
    ["0.1", 100_000],
    ["12.000001", 12_000_001],
    ["0", 0],
    ["1000000000", maxMicroDollars],
  ])("reads %s", (text, expected) => expect(parseUsd(text)).toBe(expected))

  it.each([
    "",
    ".5",
    "5.",
    "-1",
    "+1",
    "1e3",
    "0x10",
    "1,5",
    " 1",
    "1.0000001",
    "1000000000.000001",
    "NaN",
    "٣",
  ])("refuses %j", (text) => expect(parseUsd(text)).toBeUndefined())

  it.each([
    [5_000_000, "5.00"],
    [250_000, "0.25"],
    [123, "0.000123"],
    [1_500_100, "1.5001"],
    [0, "0.00"],
    [-1, "-0.000001"],
  ])("writes %d", (amount, expected) => expect(formatUsd(amount)).toBe(expected))
})

describe("costs", () => {
  it("rounds the exact sum up, once", () => {
    fc.assert(
      fc.property(tokens, tokens, price, price, (input, output, inputPrice, outputPrice) => {
        const exact = BigInt(input) * BigInt(inputPrice) + BigInt(output) * BigInt(outputPrice)
        const prices = { inputPerMillionTokens: inputPrice, outputPerMillionTokens: outputPrice }
        const cost = costOf(prices, textUsage(input, output))
        return isCeiling(cost, exact, 1_000_000n)
      }),
    )
  })

  it("charges audio by the millisecond, rounded up", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 24_000 * 3600 }), price, (samples, perMinute) => {
        const usage = audioUsage("speech", samples, 24_000)
        const cost = costOf({ perMinute }, usage)
        return (
          isCeiling(usage.audioMs, BigInt(samples) * 1000n, 24_000n) &&
          isCeiling(cost, BigInt(usage.audioMs) * BigInt(perMinute), 60_000n)
        )
      }),
    )
  })

  it("computes with the prices of the built-in catalog", () => {
    const llm = { inputPerMillionTokens: 200_000, outputPerMillionTokens: 750_000 }
    expect(costOf(llm, textUsage(1_000_000, 1_000_000))).toBe(950_000)
    expect(costOf(llm, textUsage(10, 100))).toBe(77)
    expect(costOf(llm, textUsage(1, 0))).toBe(1)
    expect(costOf(llm, textUsage(0, 0))).toBe(0)
    expect(costOf({ perMinute: 4000 }, audioUsage("transcription", 16_000 * 60, 16_000))).toBe(4000)
    expect(costOf({ perMinute: 6000 }, audioUsage("speech", 24_000, 24_000))).toBe(100)
    expect(costOf({}, textUsage(5, 5))).toBe(0)
  })
})

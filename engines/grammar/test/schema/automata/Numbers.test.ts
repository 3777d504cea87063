import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { numbers } from "../../../schema/automata/Numbers.ts"
import { isSentence } from "../Recognizer.ts"
import { randomNumbers, Sentences } from "../Sentences.ts"

const value = fc.oneof(
  fc.integer({ min: -200, max: 200 }),
  fc.integer({ min: -20_000, max: 20_000 }).map((n) => n / 100),
  fc.constantFrom(0, 0.1, -0.001, 1e15, 2 ** 53, -(2 ** 53), 1e-7, 123456789.125),
)
const bound = fc.option(fc.record({ value, exclusive: fc.boolean() }), { nil: undefined })
const limits = fc.record({ integer: fc.boolean(), least: bound, most: bound })

const fits = (number: number, { integer, least, most }: Parameters<typeof numbers>[0]): boolean =>
  !(integer && !Number.isInteger(number)) &&
  !(least !== undefined && (least.exclusive ? number <= least.value : number < least.value)) &&
  !(most !== undefined && (most.exclusive ? number >= most.value : number > most.value))

describe("numbers", () => {
  it("has every usual number within its limits, and no other", () => {
    fc.assert(
      fc.property(limits, fc.array(value, { minLength: 1, maxLength: 8 }), (some, values) => {
        const all = { ...some, multiplesOf: [] }
        const expression = numbers(all)
        for (const number of values.filter((one) => Math.abs(one) > 1e-4 || one === 0)) {
          const has =
            expression !== undefined && isSentence({ root: expression, rules: new Map() }, String(number))
          expect(has, `${number} ${JSON.stringify(all)}`).toBe(fits(number, all))
        }
      }),
    )
  })

  it("has only numbers within its limits, printed as JavaScript prints them", () => {
    fc.assert(
      fc.property(limits, fc.nat(), (some, seed) => {
        const all = { ...some, multiplesOf: [] }
        const expression = numbers(all)
        if (expression === undefined) return
        const sentences = new Sentences({ root: expression, rules: new Map() })
        const next = randomNumbers(seed)
        for (let i = 0; i < 5; i++) {
          const text = sentences.random(next, 12)
          expect(fits(Number(text), all), `${text} ${JSON.stringify(all)}`).toBe(true)
          if (text.length < 16 && !text.includes("0.00000")) expect(String(Number(text))).toBe(text)
        }
      }),
    )
  })

  const multiples: ReadonlyArray<readonly [multiplesOf: ReadonlyArray<number>, yes: string, no: string]> = [
    [[7], "-49 0 7 700", "1 8 48 7.0"],
    [[0.01], "0.07 1.1 -3.25 12", "0.001 1.111 1.10"],
    [[0.25], "0.25 0.5 7.75", "0.1 0.3 7.8"],
    [[1000], "0 1000 -25000", "100 1500 01000"],
    [[86400], "0 86400 -172800", "1 86401"],
    [[4, 6], "12 -24 0", "4 6 18"],
    [[1.5], "1.5 3 4.5", "1 2 2.5"],
  ]
  for (const [multiplesOf, yes, no] of multiples) {
    it(`has multiples of ${multiplesOf.join(" and ")}`, () => {
      const root = numbers({ integer: false, least: undefined, most: undefined, multiplesOf })!
      for (const text of yes.split(" ")) expect(isSentence({ root, rules: new Map() }, text), text).toBe(true)
      for (const text of no.split(" ")) expect(isSentence({ root, rules: new Map() }, text), text).toBe(false)
    })
  }

  it("never has -0, exponents or superfluous zeros", () => {
    const root = numbers({ integer: false, least: undefined, most: undefined, multiplesOf: [] })!
    for (const text of ["-0", "1.50", "1.0", "01", "1e5", "-0.0", ".5", "5.", "0.00001"]) {
      expect(isSentence({ root, rules: new Map() }, text), text).toBe(false)
    }
    for (const text of ["0", "-1", "0.0001", "123456789012345", "9223372036854775807", "3.14159265358979"]) {
      expect(isSentence({ root, rules: new Map() }, text), text).toBe(true)
    }
  })
})

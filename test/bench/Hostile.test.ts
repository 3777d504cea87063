// What the fuzz run of bench/hostile sends. The run itself is Hostile.long.test.ts.
import { expect, it } from "vitest"
import { inputOf, kinds } from "../../bench/hostile/Inputs.ts"

it("an input depends on its seed and its index alone", () => {
  const some = Array.from({ length: 400 }, (_, index) => inputOf(1, index))
  expect(Array.from({ length: 400 }, (_, index) => inputOf(1, 399 - index)).reverse()).toEqual(some)
  expect(new Set(some.map(({ kind }) => kind))).toEqual(new Set(kinds))
  const same = some.filter((input, index) => inputOf(2, index).bytes.equals(input.bytes))
  // At most this many inputs are left unchanged by mutation.
  expect(same.length).toBeLessThan(some.length / 8)
})

// Reads processor time from /proc.
import { expect, it } from "vitest"
import { statOf } from "../../bench/support/EngineCpu.ts"

it("reads parent and times behind a command with spaces and parentheses", () => {
  const rest = "S 4242 1 1 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 7 0 1000"
  expect(statOf(`17 (node (worker) 2) ${rest}\n`)).toEqual({ parent: 4242, cpuUs: 1_750_000 })
})

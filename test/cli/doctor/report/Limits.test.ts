// The sentences about limits: each appears only where the figures support it.
import { expect, it } from "vitest"
import { limitsOf } from "#cli/doctor/report/Limits.ts"
import { machine, report, speechReport, textReport, transcriptionReport } from "../Reports.ts"

it("names memory bandwidth where reading the weights takes most of what was measured", () => {
  // 240 MB a token, 60 tokens/s: 14.4 of 20 GB/s.
  expect(limitsOf(machine, textReport({ 1: 60 }, 2))[0]).toMatch(
    /^one reply: memory bandwidth \(each token reads 229 MiB of weights, 14\.4 GB\/s; .* 20 GB\/s here\)$/,
  )
  expect(limitsOf(machine, textReport({ 1: 20 }, 2))[0]).toMatch(/^one reply: not memory bandwidth/)
  // One thread is compared with what one thread reads.
  expect(limitsOf(machine, textReport({ 1: 40 }, 1, { threads: 1 }))[0]).toMatch(/^one reply: memory bandw/)
})

it("does not mention memory where weights fit the cache or nothing was measured", () => {
  const small = textReport({ 1: 2_000 }, 2, { weights_bytes: 1_000_000 })
  expect(limitsOf(machine, small).some((line) => line.includes("bandwidth"))).toBe(false)
  const unknown = { ...machine, read_gb_per_second: { one_thread: null, all_cores: null } }
  expect(limitsOf(unknown, textReport({ 1: 60 }, 2)).some((line) => line.includes("bandwidth"))).toBe(false)
  expect(limitsOf(machine, textReport({ 1: null, 4: null }, 2))).toEqual([])
  expect(limitsOf(machine, report({ status: "failed" }))).toEqual([])
})

it("names more streams, busy threads, free cores and slots", () => {
  expect(limitsOf(machine, textReport({ 1: 20, 4: 22, 16: 21 }, 1.95))).toEqual([
    expect.stringContaining("not memory bandwidth"),
    "more streams: 16 give 1.05 times the tokens of one, so they share what one uses alone",
    "computing: its 2 threads were busy all the time, on all available cores",
  ])
  const one = textReport({ 1: 20, 16: 60 }, 0.98, { threads: 1, threads_from: "catalog", slots: 8 })
  expect(limitsOf(machine, one).slice(1)).toEqual([
    "more streams: 16 give 3 times the tokens of one",
    "threads: its 1 thread was busy all the time, and the machine has 1 more core: `runtime.threads` of the catalog says so",
    "slots: 8 replies are written side by side, others wait (`options.slots`)",
  ])
  // A quota of the container leaves no free core.
  expect(limitsOf({ ...machine, quota_cores: 1 }, one)[2]).toContain("computing")
  expect(limitsOf(machine, textReport({ 1: 20 }, 0.5))[1]).toBe(
    "waiting: its 2 threads computed 25 % of the time; the node and the load client used 0.1 cores, other work 0.05",
  )
})

it("names admission and silences of speech", () => {
  expect(limitsOf(machine, { ...speechReport(), slots: 64 })).toEqual([
    expect.stringMatching(/^threads: /),
    "admission: the node lets streams take 80 % of the engine, at 0.02 s of work per second of speech",
    "3 streams of 40 had a gap: the machine did not keep up with what was admitted",
  ])
  expect(limitsOf(machine, { ...speechReport(), slots: 40 })[1]).toBe(
    "slots: 40 replies are computed at once (`options.slots`)",
  )
})

it("names admission and failures of live sessions", () => {
  expect(limitsOf(machine, transcriptionReport()).slice(1)).toEqual([
    "live admission: a window of 1 s costs 30 ms, and sessions may take 90 % of the engine",
    "live admission: with all of 30 speaking, windows cost more and 5 were refused",
    "live sessions: 1 of 25 ended with an error",
  ])
})

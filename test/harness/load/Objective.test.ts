// Objectives as users write them.
import { describe, expect, it } from "vitest"
import { broken, holds, parseObjective, WrongObjective } from "#harness/load/Objective.ts"

describe("is read", () => {
  it("with figures, percentiles and units", () => {
    expect(parseObjective("ttft_p95<300ms, errors<1%").conditions).toEqual([
      { on: "figure", figure: "ttft", measure: 95, below: 300 },
      { on: "errors", below: 0.01 },
    ])
    expect(
      parseObjective("e2e_p99<=2s,speech.first_sound_mean<0.5s,underruns_max<1,wer<10%").conditions,
    ).toEqual([
      { on: "figure", figure: "e2e", measure: 99, below: 2000 },
      { on: "figure", kind: "speech", figure: "first_sound", measure: "mean", below: 500 },
      { on: "figure", figure: "underruns", measure: "max", below: 1 },
      { on: "figure", figure: "wer", measure: 95, below: 0.1 },
    ])
  })

  it.each([
    ["", "no condition"],
    ["ttft<300", "a number with ms or s"],
    ["ttft>300ms", "not of the form"],
    ["tftt_p95<300ms", "no figure tftt"],
    ["ttft_p96<300ms", "no figure ttft_p96"],
    ["rtf<1s", "a number without a unit"],
    ["errors<5ms", "errors are a share"],
    ["constructor<1", "no figure constructor"],
    [`${"a".repeat(100_000)}<1`, "not of the form"],
  ])("refuses %#: %s", (text, message) => {
    expect(() => parseObjective(text)).toThrow(WrongObjective)
    expect(() => parseObjective(text)).toThrow(message)
  })
})

const objective = parseObjective("ttft<300ms,gap<100ms")

it("a request counts for goodput if all its own figures are below", () => {
  const request = (figures: object, failed = false) => ({ kind: "text", failed, figures })
  expect(holds(objective, request({ ttft: 200, gap: 50 }))).toBe(true)
  expect(holds(objective, request({ ttft: 200, gap: 150 }))).toBe(false)
  expect(holds(objective, request({ ttft: 200 }))).toBe(true)
  expect(holds(objective, request({ ttft: 200 }, true))).toBe(false)
  expect(holds(undefined, request({ ttft: 1e9 }))).toBe(true)
})

it("a condition for one kind does not judge another", () => {
  const forSpeech = parseObjective("speech.e2e<1s")
  expect(holds(forSpeech, { kind: "text", failed: false, figures: { e2e: 5_000 } })).toBe(true)
  expect(holds(forSpeech, { kind: "speech", failed: false, figures: { e2e: 5_000 } })).toBe(false)
})

it("a point is judged by its percentiles and its errors", () => {
  const point = (ttft: number, errors: number) => ({
    errors,
    kinds: ["text"],
    measured: (_: string, figure: string) => (figure === "ttft" ? ttft : 10),
  })
  expect(broken(objective, point(250, 0.005))).toEqual([])
  expect(broken(objective, point(350, 0))).toEqual(["ttft p95 is 350.0 ms"])
  expect(broken(objective, point(250, 0.02))).toEqual(["2.0 % of the requests failed"])
  expect(broken(parseObjective("errors<5%"), point(250, 0.02))).toEqual([])
  expect(broken(parseObjective("wer<5%"), { errors: 0, kinds: ["text"], measured: () => undefined })).toEqual(
    ["no request has wer"],
  )
})

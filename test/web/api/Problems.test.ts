// Every refusal of the protocol becomes one sentence that ends as one.
import { expect, it } from "vitest"
import { errorClasses } from "#domain/wire/Failures.ts"
import { NodeGone, Refusal } from "../../../src/web/api/Client.js"
import { StreamCut } from "../../../src/web/api/Events.js"
import { isAbort, sentenceOf } from "../../../src/web/api/Problems.js"

it("has one sentence for each status of the protocol", () => {
  const statuses = [...new Set(Object.values(errorClasses).map(({ failure }) => failure.status))]
  expect(statuses.length).toBeGreaterThan(10)
  for (const status of statuses) {
    const sentence = sentenceOf(new Refusal(status, "Some detail", 3))
    expect([status, sentence]).toEqual([status, expect.stringMatching(/^[A-Z][^\n]*\.$/)])
    expect([status, sentence.includes("Something failed in this page")]).toEqual([status, false])
  }
})

it("says what to do for what browsers and connections fail with", () => {
  const named = (name: string) => Object.assign(new Error("no"), { name })
  const failures = [
    new NodeGone(),
    new StreamCut(),
    ...["NotAllowedError", "NotFoundError", "NotReadableError", "InsecurePage", "PlaybackBlocked"].map(named),
  ]
  const sentences = failures.map(sentenceOf)
  expect(new Set(sentences).size).toBe(failures.length)
  for (const sentence of sentences) expect(sentence).toMatch(/^The |^No /)
  expect(isAbort(named("AbortError"))).toBe(true)
  expect(isAbort(named("Error"))).toBe(false)
})

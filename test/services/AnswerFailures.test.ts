// Which answers get a log line, and its content: pure, over invented ends of requests.
import { describe, expect, it } from "@effect/vitest"
import { Cause } from "effect"
import { EngineFailed, InvalidRequest, PaymentRequired, SynthesisFailed } from "#domain/wire/Errors.ts"
import { RequestContext } from "#http/RequestContext.ts"
import { answerLine } from "#services/AnswerFailures.ts"

const none = () => undefined

const ended = (status: number, failure: unknown, brokeOff = false) => {
  const notes = new RequestContext("req-of-the-test", () => "")
  notes.failure = failure
  notes.brokeOff = brokeOff
  const request = { method: "POST", url: "/v1/x?token=svc_secret", status, headers: {}, notes }
  return answerLine(request, "/v1/x", none)
}

describe("answerLine", () => {
  it("is silent for answers that did not fail here", () => {
    expect(ended(200, undefined)).toBeUndefined()
    expect(ended(400, new InvalidRequest({ field: "a", problem: "b" }))).toBeUndefined()
    expect(ended(0, undefined)).toBeUndefined()
    expect(ended(200, new PaymentRequired(), true)).toBeUndefined()
  })

  it("has the engine's message, and where to find more", () => {
    const line = ended(500, new EngineFailed({ model: "m", reason: "crashed", detail: "signal SIGABRT" }))
    expect(line).toMatchObject({
      event: "answer failed",
      model: "m",
      reason: "the engine crashed: signal SIGABRT",
      action: "edgewise logs m shows what its engine printed",
      requestId: "req-of-the-test",
      facts: { method: "POST", route: "/v1/x", status: 500, error: "EngineFailed" },
    })
  })

  it("names an unexpected exception, without what it quotes and without its stack", () => {
    const line = ended(500, Cause.die(new SyntaxError('Unexpected token in JSON "my secret text"')))
    expect(line).toMatchObject({
      event: "answer failed",
      reason: 'SyntaxError: Unexpected token in JSON "…"',
      facts: { error: "Defect" },
    })
    expect(JSON.stringify(line)).not.toContain("secret")
    expect(ended(500, undefined)).toMatchObject({ reason: "the handler ended without an answer" })
  })

  it("reports an answer that broke off after its head", () => {
    const failure = Cause.fail(
      new EngineFailed({ model: "m", reason: "hung", detail: "silent for 15000 ms" }),
    )
    expect(ended(200, failure, true)).toMatchObject({ event: "answer broke off", facts: { status: 200 } })
  })

  it("counts different causes of a 502 apart", () => {
    const kinds = ["unknown voice", "input: has nothing that can be pronounced", "the engine failed: x"].map(
      (detail) => ended(502, new SynthesisFailed({ model: "m", detail }))?.kind,
    )
    expect(new Set(kinds).size).toBe(3)
  })

  it("does not repeat methods that are not HTTP's", () => {
    const notes = new RequestContext("r", () => "")
    const request = { method: "svc_secret", url: "/", status: 500, headers: {}, notes }
    expect(answerLine(request, "other", none)?.facts?.method).toBe("other")
  })
})

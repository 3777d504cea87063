// Lines that belong to a request have its id, and only those: the node's own lines name no request and no trace.
import { Effect, Logger } from "effect"
import { expect, it } from "vitest"
import { CurrentRequest, RequestContext } from "#http/RequestContext.ts"
import { jsonLogger } from "../../src/telemetry/LogLines.ts"
import { logRecord } from "../../src/telemetry/OtlpBodies.ts"
import { traceOf } from "../../src/telemetry/Trace.ts"

/** One message as a line and as a record of the collector. */
const logged = async (effect: Effect.Effect<void>) => {
  const lines: Array<unknown> = []
  const records: Array<object> = []
  const loggers = [
    jsonLogger((line) => lines.push(JSON.parse(line))),
    Logger.make((options) => void records.push(logRecord(options, {}))),
  ]
  await Effect.runPromise(Effect.provide(effect, Logger.layer(loggers)))
  return { line: lines[0], record: records[0] }
}

it("a request's line has its id and its trace", async () => {
  const notes = new RequestContext("my-request", () => "")
  const { line, record } = await logged(Effect.provideService(Effect.logInfo("x"), CurrentRequest, notes))
  expect(line).toMatchObject({ message: "x", request_id: "my-request" })
  const { spanId, traceId } = traceOf(notes)
  expect(record).toMatchObject({ traceId, spanId })
})

it("the node's own line has neither", async () => {
  const { line, record } = await logged(Effect.logInfo("draining"))
  expect(line).toMatchObject({ message: "draining" })
  expect(line).not.toHaveProperty("request_id")
  expect(record).not.toHaveProperty("traceId")
  expect(JSON.stringify(record)).not.toContain("request_id")
})

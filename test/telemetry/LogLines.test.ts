// Lines that belong to a request have its id, and only those: the node's own lines name no request and no trace.
import { Effect, Logger } from "effect"
import { expect, it } from "vitest"
import { CurrentRequest, RequestContext } from "#http/RequestContext.ts"
import { jsonLogger, prettyLogger } from "../../src/telemetry/LogLines.ts"
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

/** The lines in a terminal, without their times. */
const inTerminal = async (effect: Effect.Effect<void>) => {
  const lines: Array<string> = []
  await Effect.runPromise(Effect.provide(effect, Logger.layer([prettyLogger((line) => lines.push(line))])))
  return lines.map((line) => line.replace(/^\[\d\d:\d\d:\d\d\.\d{3}\] /, ""))
}

it("in a terminal a model is one line when it is ready, and none when it begins to load", async () => {
  const facts = { model: "m", device: "host", summary: "llama, 2.5 M parameters", took_ms: 5 }
  const lines = await inTerminal(
    Effect.andThen(Effect.logInfo("model loading"), Effect.logInfo("model ready")).pipe(
      Effect.annotateLogs(facts),
    ),
  )
  expect(lines).toEqual(["m: model ready: llama, 2.5 M parameters took_ms=5"])
})

it("in a terminal a line has its level, reason and what to do, and no control characters", async () => {
  const lines = await inTerminal(
    Effect.logWarning("engine crashed").pipe(
      Effect.annotateLogs({ model: "m", reason: "a\u001b[2Jb\nc", action: "look" }),
    ),
  )
  expect(lines).toEqual(["WARN m: engine crashed: ab c (to do: look)"])
})

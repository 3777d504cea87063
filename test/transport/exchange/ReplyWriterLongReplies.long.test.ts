// Replies that take longer than uWS's own timer (10 to 12 s) to a body whose end came while it was paused: uWS starts
// that timer again when the connection is resumed, and no more bytes arrive that would restart it. All cases wait side
// by side.
import { ByteSize, Effect, Schedule, Stream } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { flood } from "../../support/clients/FloodClient.ts"
import { startListener, type TestListener } from "../TestListener.ts"

const seconds = 14
const bodyBytes = 40 * 1024 * 1024

/** A part at a time, so that the connection is paused when the end comes. */
const readSlowly = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  let size = 0
  yield* Stream.runForEachArray(request.stream, (chunks) =>
    Effect.delay(
      Effect.sync(() => {
        for (const chunk of chunks) size += chunk.length
      }),
      5,
    ),
  )
  return size
}).pipe(Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(2 * bodyBytes)))

let server: TestListener
beforeAll(async () => {
  server = await startListener([
    HttpRouter.route(
      "POST",
      "/trickles",
      Effect.map(readSlowly, (size) =>
        HttpServerResponse.stream(
          Stream.fromSchedule(Schedule.spaced(1_000)).pipe(
            Stream.take(seconds),
            Stream.map((i) => new TextEncoder().encode(`<${i} of ${size}>`)),
          ),
        ),
      ),
    ),
    HttpRouter.route(
      "POST",
      "/thinks",
      Effect.flatMap(readSlowly, (size) =>
        Effect.as(Effect.sleep(seconds * 1_000), HttpServerResponse.text(`<${size}>`)),
      ),
    ),
  ])
})
afterAll(() => server.stop())

/** What came until `end` did, or until the connection was closed. */
const answerTo = async (path: string, end: string): Promise<string> => {
  const { answer, child, closed } = flood(server.port, path, bodyBytes)
  while (!answer().includes(end) && !closed()) await new Promise((resolve) => setTimeout(resolve, 20))
  child.kill()
  return answer()
}

describe.concurrent("a long reply to a body that ended during a pause", () => {
  it.each([1, 2])("is not cut while it trickles (%d)", async () => {
    const last = `<${seconds - 1} of ${bodyBytes}>`
    expect(await answerTo("/trickles", last)).toContain(last)
  })

  it.each([1, 2])("is not cut while it is thought about (%d)", async () => {
    expect(await answerTo("/thinks", `<${bodyBytes}>`)).toContain(`<${bodyBytes}>`)
  })
})

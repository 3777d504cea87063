// A reply that fails ends with an error event, and then its connection closes. A reader that was busy just then still
// gets it: `fetch` drops bytes that were not read when the connection closes.
import { Effect } from "effect"
import { HttpRouter } from "effect/http"
import { afterAll, beforeAll, expect, it } from "vitest"
import { sinkResponse } from "#http/SinkBody.ts"
import { scheme } from "../../support/servers/TestCertificates.ts"
import { eventually, startListener, type TestListener } from "../TestListener.ts"

let server: TestListener
beforeAll(async () => {
  server = await startListener([
    HttpRouter.route(
      "GET",
      "/fails",
      Effect.succeed(
        sinkResponse(
          (sink) =>
            Effect.gen(function* () {
              sink.write("first\n")
              // A tick of its own for the head and the first bytes.
              yield* Effect.sleep("2 millis")
              sink.write("last words\n")
              return yield* Effect.fail("broken")
            }),
          { contentType: "text/event-stream" },
        ),
      ),
    ),
  ])
})
afterAll(() => server.stop())

it("are read by a client that does not read while the reply fails", async () => {
  let whole = 0
  for (let time = 0; time < 9 && whole < 3; time++) {
    const before = server.listener.counts.brokenReplies
    const answer = await fetch(`${scheme("http")}://127.0.0.1:${server.port}/fails`)
    await eventually(() => server.listener.counts.brokenReplies > before, "the reply has failed")
    const reader = answer.body!.getReader()
    let text = ""
    // The connection closes without an end, which is what `fetch` calls an error.
    const cut = await (async () => {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return false
        text += Buffer.from(value).toString()
      }
    })().catch(() => true)
    expect(cut).toBe(true)
    if (text === "first\nlast words\n") whole++
  }
  // Not each of them: a machine may pause for longer than the connection stays open.
  expect(whole).toBe(3)
})

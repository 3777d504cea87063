// GET /v1/realtime?call_id=…: a second connection to an open call, a WebSocket of the caller's server. It gets every event that the caller gets
// from then on, and its own events are carried out as the caller's are, in the order in which they come. The audio stays in the call.
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type SocketError, type Writer } from "effect/socket/Socket"
import { Signal } from "#domain/queues/Signal.ts"
import { ownedBy } from "../live/DroppedBytes.ts"
import { eventSize } from "../live/EventReader.ts"
import { identifyLive, upgradeLive } from "../live/LiveAdmission.ts"
import type { CallEnd, CallLine } from "./CallLine.ts"
import { OpenCalls } from "./OpenCalls.ts"

/** Characters of events that wait for a sideband. Beyond it the sideband is closed, and the call goes on. A guess. */
const mostUnsent = 4 * 1024 * 1024

const written = (call: CallLine, writer: Writer) =>
  Effect.gen(function* () {
    let unsent: Array<string> = []
    let characters = 0
    let end: CallEnd | undefined = call.end
    const news = new Signal()
    const leave = call.follow({
      event: (text) => {
        characters += text.length
        if (characters > mostUnsent) end ??= { code: 1013, reason: "reader too slow" }
        else unsent.push(text)
        news.set()
      },
      ended: (callEnd) => {
        end ??= callEnd
        news.set()
      },
    })
    yield* Effect.addFinalizer(() => Effect.sync(leave))
    for (;;) {
      news.clear()
      const texts = unsent
      unsent = []
      characters = 0
      for (const text of texts) yield* writer.write(text)
      if (end !== undefined && unsent.length === 0)
        return yield* writer.write(new CloseEvent(end.code, end.reason))
      if (unsent.length === 0) yield* news.wait
    }
  })

const callOf = ({ url }: HttpServerRequest.HttpServerRequest): string | null =>
  new URL(url, "http://edge").searchParams.get("call_id")

export const isSideband = (request: HttpServerRequest.HttpServerRequest): boolean => callOf(request) !== null

export const sideband = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const url = new URL(request.url, "http://edge")
  const id = callOf(request) ?? ""
  const caller = yield* identifyLive(request, url)
  const call = yield* (yield* OpenCalls).find(id, caller)
  yield* Effect.gen(function* () {
    const connection = yield* ownedBy(caller.userId, upgradeLive(request, eventSize))
    const reader = yield* connection.reader
    const writer = yield* connection.writer
    const read = Effect.gen(function* () {
      for (;;) for (const frame of yield* reader.pull) yield* call.inject(frame)
    })
    yield* Effect.raceFirst(read, written(call, writer))
  }).pipe(
    Effect.scoped,
    Effect.catchIf(
      (error): error is SocketError => error._tag === "SocketError",
      () => Effect.void,
    ),
  )
  return HttpServerResponse.empty()
})

// GET /metrics: everything the node measures, in Prometheus' text format. Read on demand from the actors and the
// meters; only the text is kept here, for a second. Labels are the catalog's model ids and fixed lists, so the number
// of series is bounded. docs/telemetry.md has a row for each; a test holds both together.
import { Clock, Context, Effect, Layer } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import { ownResidentBytes } from "#actors/device/ResidentMemory.ts"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Redeployment } from "#actors/model/Redeployment.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { Forbidden } from "#domain/wire/Errors.ts"
import { NodeIdentity } from "#http/NodeIdentity.ts"
import { CurrentNodeMeters, type NodeMeters, socketEnds } from "#http/NodeMeters.ts"
import { nowMs } from "#http/RequestContext.ts"
import { SpeechAdmission } from "#services/SpeechAdmission.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { headerCredential, identify } from "../access/Authentication.ts"
import { type CallGauges, OpenCalls } from "../calls/OpenCalls.ts"
import { type ConversationGauges, ConversationSessions } from "../conversation/ConversationSessions.ts"
import { EventLoopDelay } from "./EventLoopDelay.ts"
import { memoryFamilies } from "./MemoryMetrics.ts"
import { modelFamilies, usageFamilies } from "./ModelMetrics.ts"
import { alone, contentType, counter, type Family, gauge, render, type Samples } from "./PrometheusText.ts"

// ---------------------------------------------------------------- the node

const requestFamilies = (meters: NodeMeters): ReadonlyArray<Family> => [
  counter(
    "http_requests_total",
    "Answers by method, route and status; 101 is a WebSocket, 499 a client that left before its answer began.",
    meters
      .asked()
      .flatMap(({ counts, route }) =>
        counts.flatMap(({ byStatus, method }) =>
          [...byStatus].flatMap((count, status) =>
            count === 0 ? [] : [[{ method, route, status: String(status) }, count] as const],
          ),
        ),
      ),
  ),
  {
    name: "http_request_duration_ms",
    help: "From a request's head to the end of its answer; of a WebSocket, to its handshake.",
    type: "histogram",
    samples: meters.asked().map(({ durationMs, route }) => [{ route }, durationMs]),
  },
  gauge(
    "connections",
    "Open TCP connections, WebSockets included.",
    alone(meters.total((one) => one.connections)),
  ),
  gauge("web_sockets", "Open WebSockets.", alone(meters.total((one) => one.webSockets))),
  counter(
    "web_socket_ends_total",
    "Ended WebSockets, by who ended them and whether with a close frame.",
    socketEnds.map((how) => [{ how }, meters.total((one) => one.socketEnds[how])]),
  ),
  gauge(
    "reply_buffered_bytes",
    "Response bytes that wait for slow readers; an upper bound.",
    alone(meters.total((one) => one.replyBufferedBytes)),
  ),
  gauge(
    "body_buffered_bytes",
    "Request bytes that wait for their handler.",
    alone(meters.total((one) => one.bodyBufferedBytes)),
  ),
  counter(
    "client_aborts_total",
    "Clients that left before their answer was complete.",
    alone(meters.total((one) => one.aborts)),
  ),
  counter(
    "slow_readers_cut_total",
    "Readers cut for taking too little.",
    alone(meters.total((one) => one.slowReadersCut)),
  ),
  counter(
    "broken_replies_total",
    "Answers that failed after their head and were closed without an end.",
    alone(meters.total((one) => one.brokenReplies)),
  ),
  counter("transport_refusals_total", "What the transport itself refused, by reason.", [
    [{ reason: "connections" }, meters.total((one) => one.connectionsRefused)],
    [{ reason: "unlisted" }, meters.total((one) => one.unlistedRefused)],
    [{ reason: "messages" }, meters.total((one) => one.socketsFlooded)],
    [{ reason: "unread" }, meters.total((one) => one.socketsOverrun)],
    [{ reason: "head" }, meters.total((one) => one.headsTooLarge)],
    [{ reason: "framing" }, meters.total((one) => one.framingRefused)],
    [{ reason: "body" }, meters.total((one) => one.bodiesTooLarge)],
    [{ reason: "stalled" }, meters.total((one) => one.bodiesStalled)],
    [{ reason: "anonymous" }, meters.total((one) => one.anonymousRefused)],
    [{ reason: "scattered" }, meters.total((one) => one.bodiesScattered)],
  ]),
]

const conversationFamilies = ({ conversations }: NodeMeters): ReadonlyArray<Family> => [
  {
    name: "conversation_answer_ms",
    help: "Where the time of the answers in conversations went, by step.",
    type: "histogram",
    samples: [...conversations.stepMs]
      .filter(([, { count }]) => count > 0)
      .map(([step, histogram]) => [{ step }, histogram]),
  },
  counter(
    "conversation_answers_prepared_total",
    "Answers made before the turn had ended, by what became of them.",
    [
      [{ outcome: "sent" }, conversations.released],
      [{ outcome: "dropped" }, conversations.prepared - conversations.released],
    ],
  ),
  counter(
    "conversation_message_ends_total",
    "Questions to the text model whether the user's message has ended, by what became of them.",
    [...conversations.messageEnds].map(([outcome, count]) => [{ outcome }, count] as const),
  ),
  {
    name: "conversation_message_end_ms",
    help: "From a question whether the user's message has ended to the answer that was judged by.",
    type: "histogram",
    samples: [[{}, conversations.messageEndMs]],
  },
]

const conversationGauges = ({ crashed, open, share }: ConversationGauges): ReadonlyArray<Family> => [
  gauge("conversations", "Open conversations.", alone(open)),
  gauge(
    "conversation_share",
    "Share of the machine that the conversations that go on take, as new ones are admitted by.",
    alone(Number(share.toFixed(4))),
  ),
  counter("conversation_crashes_total", "Conversations that a defect of the node has ended.", alone(crashed)),
]

const callFamilies = ({ ended, open, qualities }: CallGauges): ReadonlyArray<Family> => [
  gauge("calls", "Open WebRTC calls.", alone(open)),
  counter(
    "calls_ended_total",
    "Ended WebRTC calls, by why they ended.",
    Object.entries(ended).map(([why, count]) => [{ why: why.replaceAll(" ", "_") }, count] as const),
  ),
  gauge(
    "call_round_trip_ms",
    "Longest round trip to the caller of an open call, by its newest report; 0 without one.",
    alone(Math.round(Math.max(0, ...qualities.map(({ roundTripMs }) => roundTripMs ?? 0)))),
  ),
  gauge(
    "call_lost_share",
    "Largest share of packets that the caller of an open call has lost, by its newest report; 0 without one.",
    alone(Number(Math.max(0, ...qualities.map(({ lost }) => lost)).toFixed(4))),
  ),
]

const telemetryFamilies = (meters: NodeMeters): ReadonlyArray<Family> => [
  counter("log_lines_total", "Log lines written.", alone(meters.logLines)),
  counter(
    "log_lines_dropped_total",
    "Log lines that found no room to wait for the reader of the log.",
    alone(meters.logLinesDropped),
  ),
  counter("otlp_sent_total", "Spans and log records that the collector has taken.", [
    [{ signal: "traces" }, meters.otlpSent.traces],
    [{ signal: "logs" }, meters.otlpSent.logs],
  ]),
  counter("otlp_dropped_total", "Spans and log records that the collector did not take in time.", [
    [{ signal: "traces" }, meters.otlpDropped.traces],
    [{ signal: "logs" }, meters.otlpDropped.logs],
  ]),
]

const regionFamilies = (meters: NodeMeters, nowMs: number): ReadonlyArray<Family> => {
  const readings = meters.regions(nowMs)
  return [
    gauge(
      "region_healthy",
      "1 while the edge of a region answers the router of this process, else 0.",
      readings.map(({ healthy, region }) => [{ region }, healthy ? 1 : 0] as const),
    ),
    gauge(
      "region_round_trip_ms",
      "Shortest of the last round trips from the router of this process to the edge of a region.",
      readings.flatMap(({ region, roundTripMs }) =>
        roundTripMs === undefined ? [] : [[{ region }, Number(roundTripMs.toFixed(3))] as const],
      ),
    ),
  ]
}

/** Every family, with or without samples. */
const families = Effect.gen(function* () {
  const views = (yield* ModelRegistry).all()
  const drain = yield* Drain
  const admission = yield* SpeechAdmission
  const live = (yield* LiveSessions).gauges(yield* monotonicMs)
  const loop = (yield* EventLoopDelay).reading()
  const meters = yield* CurrentNodeMeters
  const { name, version } = yield* NodeIdentity
  const sessions = (part: (one: { readonly sessions: number; readonly share: number }) => number): Samples =>
    [...live].map(([model, one]) => [{ model }, part(one)])
  const node: ReadonlyArray<Family> = [
    gauge("info", "1; the labels say what runs.", [[{ version, region: name }, 1]]),
    gauge(
      "models_leaving",
      "Engines that a reload of the catalog has removed or replaced and that finish their last requests.",
      alone((yield* Redeployment).leaving().length),
    ),
    gauge("requests_in_flight", "Generations admitted and not yet ended.", alone(drain.inFlight())),
    gauge("node_resident_bytes", "Resident memory of the node's own process.", alone(ownResidentBytes())),
    gauge("event_loop_delay_ms", "Lateness of the event loop over the last 10 s or more.", [
      [{ quantile: "0.5" }, loop.p50Ms],
      [{ quantile: "0.99" }, loop.p99Ms],
      [{ quantile: "1" }, loop.maxMs],
    ]),
    gauge(
      "live_sessions",
      "Live sessions, by model.",
      sessions((one) => one.sessions),
    ),
    gauge(
      "live_share",
      "Share of the engine that its live sessions take; 1 is all of it.",
      sessions((one) => Number(one.share.toFixed(4))),
    ),
    gauge(
      "speech_real_time_factor",
      "Seconds of computing a second of speech, as new streams are admitted by.",
      views.flatMap(({ entry }) => {
        const factor = admission.factor(entry.id)
        return factor === undefined ? [] : [[{ model: entry.id }, Number(factor.toFixed(4))] as const]
      }),
    ),
  ]
  return [
    ...node,
    ...(yield* memoryFamilies),
    ...modelFamilies(views),
    ...usageFamilies(views, yield* UsageLedger),
    ...requestFamilies(meters),
    ...callFamilies((yield* OpenCalls).gauges()),
    ...conversationGauges((yield* ConversationSessions).gauges(yield* monotonicMs)),
    ...conversationFamilies(meters),
    ...telemetryFamilies(meters),
    ...regionFamilies(meters, yield* Clock.currentTimeMillis),
  ]
})

/** Text made in one event loop tick: about 1 ms. */
const pieceLength = 100_000

/** A catalog may have thousands of models: other requests run in between. */
const page = Effect.gen(function* () {
  let text = ""
  let pauseAt = pieceLength
  for (const family of yield* families) {
    text += render([family])
    if (text.length < pauseAt) continue
    pauseAt = text.length + pieceLength
    yield* Effect.sleep(0)
  }
  return text
})

type Sources = Effect.Services<typeof page>

/** The text of /metrics, made at most once in a short time for all requests. */
export class MetricsPage extends Context.Service<
  MetricsPage,
  {
    readonly text: Effect.Effect<string>
    /** Whether only operators may read it. */
    readonly restricted: boolean
  }
>()("edgewise/api/MetricsPage") {
  static readonly layer = (options: {
    readonly maxAgeMs: number
    readonly restricted: boolean
  }): Layer.Layer<MetricsPage, never, Sources> =>
    Layer.effect(
      MetricsPage,
      Effect.gen(function* () {
        const { maxAgeMs, restricted } = options
        let begunMs = Number.NEGATIVE_INFINITY
        const make = Effect.suspend(() => {
          begunMs = nowMs()
          return page
        })
        const fresh = Effect.provideContext(make, yield* Effect.context<Sources>())
        const [shared, forget] = yield* Effect.cachedInvalidateWithTTL(fresh, Number.POSITIVE_INFINITY)
        // By the monotonic clock: after a wall clock is set back, old figures must not be kept.
        const text = Effect.suspend(() =>
          nowMs() - begunMs < maxAgeMs ? shared : Effect.andThen(forget, shared),
        )
        return { text, restricted }
      }),
    )
}

const operatorOnly = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { scope } = yield* identify(headerCredential(request), true)
  if (scope !== "superadmin") return yield* new Forbidden({ scope: "superadmin" })
})

export const metrics = Effect.gen(function* () {
  const { restricted, text } = yield* MetricsPage
  if (restricted) yield* operatorOnly
  return HttpServerResponse.text(yield* text, { contentType })
})

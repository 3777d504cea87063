// Sends records of one signal to a collector, in batches, from a bounded line. A collector that is down costs records,
// which are counted, and never a log line or a request's time. Made by cli's Telemetry, one a signal.
import { Effect, Fiber, Latch, type Scope } from "effect"
import type * as HttpBody from "effect/http/HttpBody"
import type { Signal } from "#http/NodeMeters.ts"

export interface ExporterSettings {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly delayMs: number
  readonly batchSize: number
  readonly queueSize: number
}

export interface ExporterCounts {
  readonly otlpSent: Record<Signal, number>
  readonly otlpDropped: Record<Signal, number>
}

/** Sendings of one batch; the pause between them doubles from a second. */
const attempts = 3
const pauseMs = 1_000
/** At the end the last batches have this long; a stop does not wait for a collector. */
const farewellMs = 2_000

/** Answers after which the specification says to try again. */
const tryAgain = [429, 502, 503, 504]

type Sent = "taken" | "refused" | "again"

const send = async (
  { headers, timeoutMs, url }: ExporterSettings,
  body: HttpBody.HttpBody,
  signal: AbortSignal,
): Promise<Sent> => {
  if (body._tag !== "Uint8Array") return "refused"
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": body.contentType },
      body: body.text ?? body.body,
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    })
    // A connection is reused once its answer is read.
    await response.arrayBuffer()
    return response.ok ? "taken" : tryAgain.includes(response.status) ? "again" : "refused"
  } catch {
    return "again"
  }
}

export interface Exporter<Record> {
  readonly push: (record: Record) => void
}

/** `encode` makes a request's body of a batch; it runs when the batch is sent. */
export const makeExporter = <Record>(
  signal: Signal,
  settings: ExporterSettings,
  counts: ExporterCounts,
  encode: (batch: ReadonlyArray<Record>) => HttpBody.HttpBody,
): Effect.Effect<Exporter<Record>, never, Scope.Scope> =>
  Effect.gen(function* () {
    let waiting: Array<Record> = []
    const full = Latch.makeUnsafe(false)

    const sendBatch = (batch: ReadonlyArray<Record>) =>
      Effect.gen(function* () {
        const body = encode(batch)
        for (let attempt = 1; ; attempt++) {
          const sent = yield* Effect.promise((abort) => send(settings, body, abort))
          if (sent === "taken") {
            counts.otlpSent[signal] += batch.length
            return
          }
          if (sent === "refused" || attempt === attempts) break
          yield* Effect.sleep(pauseMs * 2 ** (attempt - 1))
        }
        counts.otlpDropped[signal] += batch.length
      }).pipe(
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            counts.otlpDropped[signal] += batch.length
          }),
        ),
      )

    const flush = Effect.gen(function* () {
      while (waiting.length > 0) {
        const batch = waiting.slice(0, settings.batchSize)
        waiting = waiting.slice(settings.batchSize)
        yield* sendBatch(batch)
      }
    })

    let closing = false
    const loop = Effect.gen(function* () {
      while (!closing) {
        yield* Effect.raceFirst(Effect.sleep(settings.delayMs), full.await)
        full.closeUnsafe()
        yield* flush
      }
    })
    // Not in the scope: at its end the batch that is on its way goes on, for a while.
    yield* Effect.acquireRelease(Effect.forkDetach(loop), (fiber) =>
      Effect.gen(function* () {
        closing = true
        full.openUnsafe()
        yield* Effect.timeoutOption(Fiber.await(fiber), farewellMs)
        yield* Fiber.interrupt(fiber)
        counts.otlpDropped[signal] += waiting.length
        waiting = []
      }),
    )

    return {
      push: (record) => {
        if (waiting.length >= settings.queueSize) {
          counts.otlpDropped[signal]++
          return
        }
        waiting.push(record)
        if (waiting.length === settings.batchSize) full.openUnsafe()
      },
    }
  })

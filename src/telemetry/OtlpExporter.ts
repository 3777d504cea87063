// Sends records of one signal (traces or logs) to an OTLP collector, in batches, from a bounded queue. If the collector
// is down, records are dropped and counted; log lines and requests are not delayed.
import { Effect, Fiber, Latch, type Scope } from "effect"
import type * as HttpBody from "effect/http/HttpBody"
import type { Signal } from "#http/NodeMeters.ts"

interface ExporterSettings {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly delayMs: number
  readonly batchSize: number
  readonly queueSize: number
}

interface ExporterCounts {
  readonly otlpSent: Record<Signal, number>
  readonly otlpDropped: Record<Signal, number>
}

/** Attempts per batch. The pause between them starts at a second and doubles. */
const attempts = 3
const pauseMs = 1_000
/** Longest wait for the last batches at the end; stopping does not wait for a collector. */
const lastExportMs = 2_000

/** Statuses for which the OTLP specification demands a retry. */
const retryableStatuses = [429, 502, 503, 504]

type Sent = "accepted" | "refused" | "retry"

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
    // The connection is reused only after the body has been read.
    await response.arrayBuffer()
    return response.ok ? "accepted" : retryableStatuses.includes(response.status) ? "retry" : "refused"
  } catch {
    return "retry"
  }
}

interface Exporter<Record> {
  readonly push: (record: Record) => void
}

/** `encode` makes the request body of a batch, when the batch is sent. */
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
          if (sent === "accepted") {
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
    // Not forked in the scope: at the scope's end the batch in flight may continue for a while.
    yield* Effect.acquireRelease(Effect.forkDetach(loop), (fiber) =>
      Effect.gen(function* () {
        closing = true
        full.openUnsafe()
        yield* Effect.timeoutOption(Fiber.await(fiber), lastExportMs)
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

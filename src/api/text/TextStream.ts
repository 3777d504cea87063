// A generation as Server-Sent Events over a sink body: the hot path of text. Both endpoints supply the frames around
// the text; back-pressure, ends and failures are handled here.
import { Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { EdgeError } from "#domain/wire/Failures.ts"
import type { DeltaDetail, GenerateEnd, TextDelta } from "#engines/protocol/Engine.ts"
import type { Flow, Reader } from "#engines/protocol/Reader.ts"
import { streamError } from "#http/ErrorBody.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { type Sink, sinkResponse } from "#http/SinkBody.ts"
import type { Generation } from "#services/Generation.ts"

/** One event. Safe for any text inside: JSON escapes CR and LF, the only characters with a meaning in an event stream. */
export const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`

export const doneEvent = "data: [DONE]\n\n"

/**
 * A frame around a text that differs from event to event only in that text. `around` is serialised once with a
 * marker; `JSON.stringify` of the text is put in its place per token.
 */
export class TextFrame {
  readonly before: string
  readonly after: string

  constructor(around: (marker: string) => unknown) {
    const marker = "\u0000text\u0000"
    const [before = "", after = ""] = event(around(marker)).split(JSON.stringify(marker))
    this.before = before
    this.after = after
  }

  of(text: string): string {
    return this.before + JSON.stringify(text) + this.after
  }
}

interface StreamOptions {
  readonly include_usage?: unknown
  readonly include_timing?: unknown
}

/** The fields of a stream's last chunk beside the text, if requested. */
export interface Extras {
  readonly usage: boolean
  /** The time of each step, read when the last chunk is written. */
  readonly timing: () => object
}

const none = (): object => ({})

export const extrasOf = (options: StreamOptions | null | undefined) =>
  Effect.map(
    CurrentRequest,
    (notes): Extras => ({
      usage: options?.include_usage === true,
      timing: options?.include_timing === true ? () => ({ timing: notes.timing() }) : none,
    }),
  )

/** Makes the event of a plain text. */
export interface TextOnly {
  readonly of: (text: string) => string
}

export interface StreamFrames {
  /** Everything before the first delta. Default: nothing. */
  readonly opening?: string
  /** Frame of the first text event, which may carry more than the later ones (a role). */
  readonly first: TextOnly
  readonly next: TextOnly
  /**
   * The events of a delta with a detail, which plain text of the only reply does not have; empty if there are none.
   * `begun`: the first reply has been sent something.
   */
  readonly detailed: (detail: DeltaDetail, text: string, begun: boolean) => string
  /** Everything after the last text event, `closing` excluded. */
  readonly last: (end: GenerateEnd) => string
  /** Default: `[DONE]`. */
  readonly closing?: string
  /** The events of a failure. Default: the event of protocol 3.5. */
  readonly failed?: (error: EdgeError) => string
}

/** Longest text that is written at once: at most three quarters of what the transport holds for a reader. */
const maxCharsAtOnce = 64 * 1024
/** Characters of the pieces of a longer one: at most the transport's own piece as UTF-8. */
const charsOfPiece = 5 * 1024

/** Where the piece that begins at `at` ends: never inside a surrogate pair. */
const endOfPiece = (text: string, at: number): number => {
  const end = at + charsOfPiece
  const isSplit = (text.charCodeAt(end - 1) & 0xfc00) === 0xd800
  return Math.min(text.length, isSplit ? end + 1 : end)
}

const nothing = (): void => {}

/** Of every event stream. */
export const eventStreamHeaders = {
  "cache-control": "no-cache",
  // Makes nginx and compatible proxies pass the stream on without buffering.
  "x-accel-buffering": "no",
}

/** Writes deltas as events, and pauses their generation while the socket is full. A class for the reason of MeteredReader (ModelRun). */
class TextEvents implements Reader<TextDelta> {
  readonly #sink: Sink
  #frame: TextOnly
  #paused = false
  #waiter: () => void = nothing
  readonly #next: TextOnly
  readonly #frames: StreamFrames
  readonly #flow: Flow

  constructor(sink: Sink, frames: StreamFrames, flow: Flow) {
    this.#sink = sink
    this.#frame = frames.first
    this.#next = frames.next
    this.#frames = frames
    this.#flow = flow
  }

  take({ detail, text }: TextDelta): void {
    if (detail !== undefined) return this.#takeDetailed(detail, text)
    if (text === "") return
    this.#write(this.#frame.of(text))
    this.#frame = this.#next
  }

  #takeDetailed(detail: DeltaDetail, text: string): void {
    const events = this.#frames.detailed(detail, text, this.#frame === this.#next)
    if (events === "") return
    this.#write(events)
    if ((detail.reply ?? 0) > 0) return
    this.#frame = this.#next
  }

  #write(events: string): void {
    const accepted = this.#sink.write(events)
    if (accepted || this.#paused) return
    this.#paused = true
    this.#flow.pause()
  }

  drained(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#flow.resume()
    const waiter = this.#waiter
    this.#waiter = nothing
    waiter()
  }

  /** Completes when the socket accepts data. */
  readonly #accepting: Effect.Effect<void> = Effect.callback((resume) => {
    if (!this.#paused) return resume(Effect.void)
    this.#waiter = () => resume(Effect.void)
  })

  /** Writes events of any length: waits for the reader after each piece that fills the socket. */
  writeAll(events: string): Effect.Effect<void> {
    if (events.length <= maxCharsAtOnce) return Effect.sync(() => this.#write(events))
    return this.#writeFrom(events, 0)
  }

  /** Encoding 7 MB, the longest event, takes 6 ms: the event loop does other work in between. */
  #writeFrom(events: string, start: number): Effect.Effect<void> {
    const limit = Math.min(events.length, start + maxCharsAtOnce)
    let at = start
    while (at < limit && !this.#paused) {
      const end = endOfPiece(events, at)
      this.#write(events.slice(at, end))
      at = end
    }
    if (at >= events.length) return Effect.void
    const next = this.#paused ? this.#accepting : Effect.yieldNow
    return Effect.flatMap(next, () => this.#writeFrom(events, at))
  }
}

const writeReply = Effect.fnUntraced(function* (generation: Generation, frames: StreamFrames, sink: Sink) {
  const events = new TextEvents(sink, frames, generation.flow)
  sink.onDrain(() => events.drained())
  if (frames.opening !== undefined) yield* events.writeAll(frames.opening)
  generation.read(events)
  const end = yield* generation.end.pipe(
    Effect.tapError((error: EdgeError) =>
      Effect.sync(() => {
        sink.write(frames.failed?.(error) ?? event({ error: streamError(error) }))
      }),
    ),
  )
  yield* events.writeAll(frames.last(end) + (frames.closing ?? doneEvent))
})

/** The streaming reply of an accepted generation. */
export const streamReply = (
  generation: Generation,
  frames: StreamFrames,
): HttpServerResponse.HttpServerResponse =>
  sinkResponse((sink) => writeReply(generation, frames, sink), {
    contentType: "text/event-stream; charset=utf-8",
    headers: eventStreamHeaders,
  })

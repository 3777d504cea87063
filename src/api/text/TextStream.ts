// A generation as Server-Sent Events over a sink body: the hot path of text. Both endpoints supply the frames around
// the text; back-pressure, ends and failures are handled here.
import { Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { Flow } from "#actors/engine/EngineRequest.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import type { GenerateEnd, TextDelta } from "#engines/protocol/Engine.ts"
import { streamError } from "#http/ErrorBody.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { type Sink, sinkResponse } from "#http/SinkBody.ts"
import type { DeltaReader, Generation } from "#services/Generation.ts"

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

export interface StreamFrames {
  /** Frame of the first text event, which may carry more than the later ones (a role). */
  readonly first: TextFrame
  readonly next: TextFrame
  /** Everything after the last text event, `[DONE]` excluded. */
  readonly last: (end: GenerateEnd) => string
}

const headers = {
  "cache-control": "no-cache",
  // Makes nginx and compatible proxies pass the stream on without buffering.
  "x-accel-buffering": "no",
}

/** Writes deltas as events, and pauses their generation while the socket is full. A class for the reason of RunListener (ModelRun). */
class TextEvents implements DeltaReader {
  private readonly sink: Sink
  private frame: TextFrame
  private paused = false
  private readonly next: TextFrame
  private readonly flow: Flow

  constructor(sink: Sink, { first, next }: StreamFrames, flow: Flow) {
    this.sink = sink
    this.frame = first
    this.next = next
    this.flow = flow
  }

  take({ text }: TextDelta): void {
    if (text === "") return
    const accepted = this.sink.write(this.frame.of(text))
    this.frame = this.next
    if (accepted || this.paused) return
    this.paused = true
    this.flow.pause()
  }

  drained(): void {
    if (!this.paused) return
    this.paused = false
    this.flow.resume()
  }
}

/** The streaming reply of an accepted generation. */
export const streamReply = (
  generation: Generation,
  frames: StreamFrames,
): HttpServerResponse.HttpServerResponse =>
  sinkResponse(
    (sink) =>
      Effect.gen(function* () {
        const events = new TextEvents(sink, frames, generation.flow)
        sink.onDrain(() => events.drained())
        generation.read(events)
        const end = yield* generation.end.pipe(
          Effect.tapError((error: EdgeError) =>
            Effect.sync(() => {
              sink.write(event({ error: streamError(error) }))
            }),
          ),
        )
        sink.write(frames.last(end) + doneEvent)
      }),
    { contentType: "text/event-stream; charset=utf-8", headers },
  )

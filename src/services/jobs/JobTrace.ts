// The span of one slice of a transcription job. It belongs to the trace of the request that submitted the job, or to a new trace
// if that is unknown. Exists only if traces are exported. Never contains a transcript.
import { Effect } from "effect"
import { Decoder } from "#audio/Decoder.ts"
import { listenRateHz, samplesToMs } from "#domain/audio/Audio.ts"
import type { Transcript } from "#domain/audio/Transcript.ts"
import type { NodeMeters } from "#http/NodeMeters.ts"
import { CurrentRequest, nowMs, type RequestContext } from "#http/RequestContext.ts"
import { TracedWork } from "#http/TracedWork.ts"
import type { Job, NewJob } from "#store/ledger/JobRows.ts"
import type { Kept } from "./JobWorld.ts"

const transcribedMs = ({ progress }: Kept): number => samplesToMs(progress?.samples ?? 0, listenRateHz)

/** Adds the span of the submitting request to the job as parent of its slices, also of those after a crash. */
export const inTraceOf = (request: RequestContext, job: NewJob, { tracer }: NodeMeters): NewJob =>
  tracer === undefined
    ? job
    : { ...job, options: { ...job.options, traceparent: tracer.traceparentOf(request) } }

/** How a slice ends; the first three also end the job. */
type SliceEnd = "completed" | "failed" | "cancelled" | "paused" | "turn over" | "stopped"

export class JobTrace {
  readonly #work: TracedWork
  readonly #jobId: string
  readonly #kept: Kept
  readonly #fromMs: number
  #untilMs: number | undefined
  #ending: SliceEnd = "stopped"
  #failed = false

  private constructor(work: TracedWork, jobId: string, kept: Kept) {
    this.#work = work
    this.#jobId = jobId
    this.#kept = kept
    this.#fromMs = transcribedMs(kept)
  }

  /** Undefined if traces are not exported. */
  static begin({ tracer }: NodeMeters, job: Job, kept: Kept): JobTrace | undefined {
    if (tracer === undefined) return undefined
    const work = new TracedWork(tracer, "transcription job", job.id, job.options.traceparent)
    work.notes.model = job.model
    return new JobTrace(work, job.id, kept)
  }

  /** Runs the slice as part of this span: times that the run records, and one step for each start of a decoder. */
  follow<E, R>(slice: Effect.Effect<Transcript, E, R>): Effect.Effect<Transcript, E, R | Decoder> {
    const work = this.#work
    return slice.pipe(
      Effect.provideService(CurrentRequest, work.notes),
      Effect.updateService(Decoder, (decoder) => ({
        ...decoder,
        decodeInto: (path, ring, options) =>
          Effect.suspend(() => {
            const fromMs = nowMs()
            const noted = Effect.sync(() => work.step("decode", fromMs))
            return Effect.ensuring(decoder.decodeInto(path, ring, options), noted)
          }),
      })),
      Effect.tap(({ duration }) =>
        Effect.sync(() => {
          this.#untilMs = duration * 1000
        }),
      ),
      Effect.ensuring(Effect.sync(() => work.engineEnded())),
    )
  }

  /** Records the time of storing the job's end: its receipt, its row, the removal of its upload. */
  settle<A, E, R>(writing: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      const fromMs = nowMs()
      return Effect.ensuring(
        writing,
        Effect.sync(() => this.#work.step("settle", fromMs)),
      )
    })
  }

  /** @param failed whether the end is this node's fault */
  ends(ending: SliceEnd, failed = false): void {
    this.#ending = ending
    this.#failed = failed
  }

  /** Ends the span. Call it when the outcome of the slice is stored. */
  over(): void {
    const ending = this.#ending === "stopped" && this.#kept.cancelled ? "cancelled" : this.#ending
    this.#work.end(
      {
        "edgewise.job_id": this.#jobId,
        "edgewise.outcome": ending,
        "edgewise.audio_from_ms": this.#fromMs,
        "edgewise.audio_ms": Math.max(0, (this.#untilMs ?? transcribedMs(this.#kept)) - this.#fromMs),
      },
      this.#failed,
    )
  }
}

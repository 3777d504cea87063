// Background work of an answer, for traces: a slice of a job, a live session, a generation on a socket. The code that
// does the work begins a record here, adds facts, and ends it; if no traces are exported there is no record. Holds ids
// and numbers, never texts. Knows no format of spans: that is in telemetry.
import { nowMs, RequestContext } from "./RequestContext.ts"

export type WorkName =
  | "transcription job"
  | "live transcription"
  | "realtime transcription"
  | "completions socket"
  | "conversation"
  | "answer"
  | "generation"

/** Facts for the span: ids, numbers and constant texts. */
export type Facts = Readonly<Record<string, string | number | undefined>>

interface WorkStep {
  readonly name: "decode" | "settle"
  readonly fromMs: number
  readonly toMs: number
}

export interface EndedWork {
  readonly name: WorkName
  /** The context of the work itself: when it began, its trace, and the steps that a model's run records there. */
  readonly notes: RequestContext
  /** When the model had finished it. */
  readonly engineEndedMs: number
  readonly endedMs: number
  /** True if this node is at fault. */
  readonly failed: boolean
  readonly facts: Facts
  readonly steps: ReadonlyArray<WorkStep>
}

/** Makes spans of records. */
export interface WorkTracer {
  /** W3C Trace Context of a request's own span: background work of the request becomes its child. */
  readonly traceparentOf: (notes: RequestContext) => string
  /** Must be quick and must not throw. */
  readonly ended: (work: EndedWork) => void
}

/** Most steps recorded for one piece of work: a slice of a job has three, and one more if its decoder crashed. */
const maxSteps = 8

export class TracedWork {
  /** Provided as `CurrentRequest` for a model's run whose steps belong to this work. */
  readonly notes: RequestContext
  readonly #tracer: WorkTracer
  readonly #name: WorkName
  readonly #steps: Array<WorkStep> = []
  #engineEndedMs: number | undefined
  #told = false

  /** @param traceparent undefined for a trace of its own */
  constructor(tracer: WorkTracer, name: WorkName, requestId: string, traceparent: string | undefined) {
    this.#tracer = tracer
    this.#name = name
    this.notes = new RequestContext(requestId, () => "")
    this.notes.traceparent = traceparent
  }

  /** A step that ends now. */
  step(name: WorkStep["name"], fromMs: number): void {
    if (this.#steps.length < maxSteps) this.#steps.push({ name, fromMs, toMs: nowMs() })
  }

  /** Ends the model's part; what follows is bookkeeping. */
  engineEnded(): void {
    this.#engineEndedMs ??= nowMs()
  }

  /** Only the first end counts. */
  end(facts: Facts, failed: boolean): void {
    if (this.#told) return
    this.#told = true
    const endedMs = nowMs()
    this.#tracer.ended({
      name: this.#name,
      notes: this.notes,
      engineEndedMs: this.#engineEndedMs ?? endedMs,
      endedMs,
      failed,
      facts,
      steps: this.#steps,
    })
  }

  /** Work inside this work. */
  begin(name: WorkName): TracedWork {
    return new TracedWork(this.#tracer, name, this.notes.requestId, this.#tracer.traceparentOf(this.notes))
  }
}

/** Background work of the request with this context; undefined if traces are not exported. */
export const workBehind = (
  { tracer }: { readonly tracer: WorkTracer | undefined },
  name: WorkName,
  request: RequestContext,
): TracedWork | undefined =>
  tracer === undefined
    ? undefined
    : new TracedWork(tracer, name, request.requestId, tracer.traceparentOf(request))

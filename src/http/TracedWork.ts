// Work that goes on behind an answer, for traces: a job's turn, a live session, a generation on a socket. Whoever does the
// work begins one here, notes what it learns, and ends it; where no traces are exported there is none, and nothing is
// kept. Holds ids and numbers, never what was said. Knows no span's format: that is telemetry's.
import type { NodeMeters } from "./NodeMeters.ts"
import { nowMs, RequestContext } from "./RequestContext.ts"

export type WorkName =
  | "transcription job"
  | "live transcription"
  | "realtime transcription"
  | "completions socket"
  | "generation"

/** What is told of it: ids, numbers and words of this program's own. */
export type Facts = Readonly<Record<string, string | number | undefined>>

export interface WorkStep {
  readonly name: "decode" | "settle"
  readonly fromMs: number
  readonly toMs: number
}

export interface EndedWork {
  readonly name: WorkName
  /** Of the work itself: when it began, whose trace it goes on in, and the steps that a model's run notes there. */
  readonly notes: RequestContext
  /** When the model was done with it. */
  readonly engineEndedMs: number
  readonly endedMs: number
  /** This node's fault. */
  readonly failed: boolean
  readonly facts: Facts
  readonly steps: ReadonlyArray<WorkStep>
}

/** Who makes spans of it. */
export interface WorkTracer {
  /** W3C Trace Context of a request's own span: what goes on behind the request is its child. */
  readonly traceparentOf: (notes: RequestContext) => string
  /** Must be quick and must not throw. */
  readonly ended: (work: EndedWork) => void
}

/** Steps that are kept of one piece of work: a job's turn has three, and one more where its decoder died. */
const maxSteps = 8

export class TracedWork {
  /** Provided as `CurrentRequest` where a model's run shall note its steps. */
  readonly notes: RequestContext
  private readonly tracer: WorkTracer
  private readonly name: WorkName
  private readonly steps: Array<WorkStep> = []
  private engineEndedMs: number | undefined
  private told = false

  /** @param traceparent undefined for a trace of its own */
  constructor(tracer: WorkTracer, name: WorkName, requestId: string, traceparent: string | undefined) {
    this.tracer = tracer
    this.name = name
    this.notes = new RequestContext(requestId, () => "")
    this.notes.traceparent = traceparent
  }

  /** A step that ends now. */
  step(name: WorkStep["name"], fromMs: number): void {
    if (this.steps.length < maxSteps) this.steps.push({ name, fromMs, toMs: nowMs() })
  }

  /** What follows is bookkeeping. */
  engineEnded(): void {
    this.engineEndedMs ??= nowMs()
  }

  /** The first end counts. */
  end(facts: Facts, failed: boolean): void {
    if (this.told) return
    this.told = true
    const endedMs = nowMs()
    this.tracer.ended({
      name: this.name,
      notes: this.notes,
      engineEndedMs: this.engineEndedMs ?? endedMs,
      endedMs,
      failed,
      facts,
      steps: this.steps,
    })
  }

  /** Work inside this work. */
  begin(name: WorkName): TracedWork {
    return new TracedWork(this.tracer, name, this.notes.requestId, this.tracer.traceparentOf(this.notes))
  }
}

/** Work behind the request of these notes; undefined where traces are not exported. */
export const workBehind = (
  { tracer }: NodeMeters,
  name: WorkName,
  request: RequestContext,
): TracedWork | undefined =>
  tracer === undefined
    ? undefined
    : new TracedWork(tracer, name, request.requestId, tracer.traceparentOf(request))

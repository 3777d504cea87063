// What one deployed model has done since the node started, in numbers: kept by its Model across loads, written by its host
// and by the api where only that knows, read by /metrics. Writing is an addition or two; there is nothing to flush.
import { Histogram } from "#domain/queues/Histogram.ts"

/** How a request ended, as the model sees it. */
export type Outcome = "done" | "failed" | "cancelled" | "refused"

export class ModelMeters {
  /** From asking for a slot to having one. Work in the background is not counted: it is made to wait. */
  readonly queueWaitMs = new Histogram()
  /** From asking for a slot to the first text, sound or segment. */
  readonly firstUnitMs = new Histogram()
  /** Between two messages of the engine that carry units of the same request. */
  readonly unitGapMs = new Histogram()
  /** From a request's cancelling to its slot being free. */
  readonly cancelToIdleMs = new Histogram()
  readonly loadMs = new Histogram()
  /** From an unload's beginning until the process and its memory were gone. */
  readonly unloadToFreedMs = new Histogram()
  /** Speech streams: from the request's head to the first audio that the socket took. */
  readonly firstAudioMs = new Histogram()
  /** Live sessions: from the arrival of the last sample that a caption covers to the caption. */
  readonly deltaLagMs = new Histogram()
  readonly outcomes: Record<Outcome, number> = { done: 0, failed: 0, cancelled: 0, refused: 0 }
  restarts = 0
  /** Silences that a listener of a speech stream would have heard, and their length. */
  underruns = 0
  underrunMs = 0
}

// Counters and histograms of one deployed model since the node started, kept across loads and shown in /metrics.
// Writing costs an addition or two; there is nothing to flush.
import { Histogram } from "#domain/queues/Histogram.ts"

/** How a request ended, as the model sees it. */
type Outcome = "done" | "failed" | "cancelled" | "refused"

export class ModelMeters {
  /** From requesting a slot to having one. Background work is not counted: it waits deliberately. */
  readonly queueWaitMs = new Histogram()
  /** From requesting a slot to the first text, audio or segment. */
  readonly firstUnitMs = new Histogram()
  /** Between two messages of the engine that carry units of the same request. */
  readonly unitGapMs = new Histogram()
  /** From a request's cancelling to its slot being free. */
  readonly cancelToIdleMs = new Histogram()
  readonly loadMs = new Histogram()
  /** From the beginning of an unload until the process has ended and its memory is free. */
  readonly unloadToFreedMs = new Histogram()
  /** Speech streams: from the request's head to the first audio that the socket accepted. */
  readonly firstAudioMs = new Histogram()
  /** Live sessions: from the arrival of the last sample that a caption covers to the caption. */
  readonly deltaLagMs = new Histogram()
  readonly outcomes: Record<Outcome, number> = { done: 0, failed: 0, cancelled: 0, refused: 0 }
  restarts = 0
  /** Gaps in playback of speech streams that arrived too late, and their length. */
  underruns = 0
  underrunMs = 0
}

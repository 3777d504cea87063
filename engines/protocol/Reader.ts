// The reading end of a stream: tokens, audio, segments and vectors travel from an engine to one reader by plain calls. Nothing is queued
// between the engine's message and the reader, and no fiber runs for a unit. A request that is interrupted is cancelled: its
// reader gets no more calls. How a stream failed is the failure of its request.

/** Pauses one stream while its reader is behind; other streams go on. */
export interface Flow {
  readonly pause: () => void
  readonly resume: () => void
}

/** Called on the event loop as the units arrive; must be quick and must not throw. */
export interface Reader<in Unit, in Started = unknown, in End = unknown> {
  /** Once, before the first unit: the engine has begun. */
  started?(started: Started, flow: Flow): void
  /** One unit. A reader that is behind calls `flow.pause` and still takes those that are under way. */
  take(unit: Unit): void
  /** Once, after the last unit, if the stream has ended well. */
  ended?(end: End): void
}

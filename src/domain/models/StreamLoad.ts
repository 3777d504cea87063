// How many streams of speech a model can feed without a gap: pure arithmetic on its real-time factor, the time that
// computing a second of speech takes. Called by the admission of streams; knows no clock and no model.

/**
 * The share of its time that a model may have to spend on the streams that are open. What is left covers pieces that
 * cost more than the mean, a batch piece that cannot be interrupted, and a busy machine. A guess, held by the bench:
 * no under-run up to it.
 */
export const MAX_STREAM_LOAD = 0.8

/** Speech after which an old measurement counts for a third: half a minute, a handful of requests. A guess. */
const MEMORY_MS = 30_000

/**
 * The moving factor after one more reply: `computeMs` went into `audioMs` of speech. Long replies say more than short
 * ones.
 */
export const nextFactor = (
  before: number | undefined,
  computeMs: number,
  audioMs: number,
): number | undefined => {
  if (!(audioMs > 0 && computeMs >= 0 && Number.isFinite(computeMs))) return before
  const seen = computeMs / audioMs
  if (before === undefined) return seen
  return before + (seen - before) * (1 - Math.exp(-audioMs / MEMORY_MS))
}

/**
 * Seconds of ordinary speech that a stream's listener hears in a second. Fast speech holds more words a second, and a
 * model that computes by words has to hurry; slow speech is not counted as less, as some compute by samples.
 */
export const weightOf = (speed: number): number => Math.max(1, speed)

/**
 * Whether one more stream can be fed in time. A lone stream always may: refusing it would mean that nothing is ever
 * measured again. So does every stream while nothing is known, which is until the model has loaded.
 */
export const admits = (openWeight: number, weight: number, factor: number | undefined): boolean =>
  openWeight === 0 || factor === undefined || (openWeight + weight) * factor <= MAX_STREAM_LOAD

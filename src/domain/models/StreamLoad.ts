// Admission of speech streams (protocol 8.8): how many streams a model can produce without a gap, from its real-time
// factor (computing time per second of speech). Pure.

/**
 * The share of a model's time that open streams may need. The rest covers pieces that cost more than the mean, a batch
 * piece that cannot be interrupted, and a busy machine. A guess, confirmed by the bench: no under-run up to it.
 */
export const maxStreamLoad = 0.8

/**
 * Speech after which the weight of an old measurement has dropped to a third: half a minute, a handful of requests. A
 * guess.
 */
const memoryMs = 30_000

/**
 * The moving real-time factor after one more reply that took `computeMs` for `audioMs` of speech. Long replies weigh
 * more.
 */
export const nextFactor = (
  before: number | undefined,
  computeMs: number,
  audioMs: number,
): number | undefined => {
  if (!(audioMs > 0 && computeMs >= 0 && Number.isFinite(computeMs))) return before
  const seen = computeMs / audioMs
  if (before === undefined) return seen
  return before + (seen - before) * (1 - Math.exp(-audioMs / memoryMs))
}

/**
 * Load of a stream, in seconds of speech at speed 1 per second of playback. Fast speech has more words a second, so a
 * model whose work depends on words must compute faster. Slow speech counts as 1, because some models' work depends on
 * samples.
 */
export const weightOf = (speed: number): number => Math.max(1, speed)

/**
 * True if one more stream can be served in time. The only stream is always admitted; otherwise nothing would ever be
 * measured again. All streams are admitted while there is no measurement, which is until the model has loaded.
 */
export const admits = (openWeight: number, weight: number, factor: number | undefined): boolean =>
  openWeight === 0 || factor === undefined || (openWeight + weight) * factor <= maxStreamLoad

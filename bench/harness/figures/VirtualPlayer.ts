// Plays a stream of audio on paper: whether a listener would have heard silences because audio arrived late. Pure.

/** All the audio that had arrived by a time, milliseconds of sound since the beginning of the stream. */
export interface Delivered {
  readonly atMs: number
  readonly audioMs: number
}

export interface Playback {
  /** How often the player ran out of audio before the stream's end. */
  readonly underruns: number
  /** Silence between the first sample and the last, milliseconds, over all under-runs. */
  readonly starvedMs: number
  /** The least lead of the stream over playback when audio arrived, milliseconds; negative if it ran out. */
  readonly leastAheadMs: number
  readonly audioMs: number
}

/** Shorter silences are rounding of clocks and sample counts, not gaps. */
const roundingMs = 0.01

/**
 * The player starts when `bufferMs` of audio are there, or the stream has ended. Later it waits whenever it has none, and
 * goes on with the next that arrives, without filling the buffer again.
 * @param deliveries in order of time; none has less audio than the one before
 */
export const play = (deliveries: ReadonlyArray<Delivered>, bufferMs = 0): Playback => {
  const audioMs = deliveries.at(-1)?.audioMs ?? 0
  const startAt = deliveries.findIndex((one) => one.audioMs > 0 && one.audioMs >= bufferMs)
  const start = deliveries[startAt]
  let underruns = 0
  let starvedMs = 0
  let leastAheadMs = Number.POSITIVE_INFINITY
  // A stream shorter than the buffer is played from its end, without a gap.
  if (start === undefined) return { underruns, starvedMs, leastAheadMs: bufferMs, audioMs }
  // Playback of all earlier audio ends at startedMs + haveMs.
  let startedMs = start.atMs
  let haveMs = start.audioMs
  for (const { atMs, audioMs: nowMs } of deliveries.slice(startAt + 1)) {
    if (nowMs <= haveMs) continue
    const aheadMs = startedMs + haveMs - atMs
    leastAheadMs = Math.min(leastAheadMs, aheadMs)
    if (aheadMs < -roundingMs) {
      underruns++
      starvedMs -= aheadMs
      startedMs -= aheadMs
    }
    haveMs = nowMs
  }
  return { underruns, starvedMs, leastAheadMs, audioMs }
}

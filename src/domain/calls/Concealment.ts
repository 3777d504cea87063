// Audio in place of a packet that was lost: the newest audio backwards and forwards again, which goes on without a step, quieter and quieter.
// Speech changes little within a packet, so this is nearer to it than silence. Pure.

/** Samples that are repeated, at 24 kHz: a packet of 20 ms. */
const repeated = 480

/** Loudness of each repetition, of the one before. A guess. */
const fading = 0.7

/** Repetitions that are made; behind them is silence. A longer loss has no likeness to what was before. A guess. */
const mostRepetitions = 3

/** @param before the newest samples before the loss */
export const concealed = (before: Int16Array, length: number): Int16Array => {
  const out = new Int16Array(length)
  const last = before.subarray(-repeated)
  if (last.length === 0) return out
  let gain = 1
  for (let at = 0; at < Math.min(length, mostRepetitions * last.length); at++) {
    const nth = Math.floor(at / last.length)
    const within = at % last.length
    if (within === 0) gain = fading ** nth
    // Fades within the repetition, too: there is no step from one to the next.
    const fade = gain * (1 - ((1 - fading) * within) / last.length)
    out[at] = Math.round(fade * last[nth % 2 === 0 ? last.length - 1 - within : within]!)
  }
  return out
}

// Where a piece of audio ends that is heard chunk by chunk: at a pause, and at the latest after the longest piece. The decision reads only
// what was heard until there, so later audio never changes it, and captions of live audio never have to be taken back. Pure.

/** Pause that ends a piece as soon as one may end, seconds. A guess: a pause between sentences. */
const longPause = 0.8
/** Part of the longest piece in which nothing ends it. A guess. */
const least = 0.4

/**
 * Whether a piece that has lasted `seconds` ends after `pause` seconds without a token. The pause that is enough shrinks from `longPause` to
 * nothing at `mostSeconds`.
 */
export const endsPiece = (seconds: number, pause: number, mostSeconds: number): boolean => {
  const begin = least * mostSeconds
  if (seconds < begin) return false
  if (seconds >= mostSeconds) return true
  return pause >= (longPause * (mostSeconds - seconds)) / (mostSeconds - begin)
}

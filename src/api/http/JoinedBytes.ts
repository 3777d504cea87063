// Joins the parts of a large body without holding the event loop.
import { Effect } from "effect"

/** Bytes copied in one tick; memory that was never touched takes 4 MB in about 2 ms (measured). */
const copyBytes = 4 * 1024 * 1024

/** The parts as one array, letting others run in between: the longest reply has 172 MB. */
export const joined = Effect.fnUntraced(function* (parts: ReadonlyArray<Uint8Array>) {
  const whole = Buffer.allocUnsafeSlow(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  let copied = 0
  for (const part of parts) {
    for (let from = 0; from < part.length; from += copyBytes) {
      const piece = part.subarray(from, from + copyBytes)
      whole.set(piece, at)
      at += piece.length
      copied += piece.length
      if (copied < copyBytes) continue
      copied = 0
      yield* Effect.sleep(0)
    }
  }
  return whole
})

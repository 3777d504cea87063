// Decides when to give up on a request body. Pure rules over measured times.
import type { TransportSettings } from "./TransportSettings.ts"

/** Times in milliseconds. Time while the connection is paused counts only in `pausedMs`. */
export interface BodyTimeouts {
  /** Since the head, without pauses. */
  readonly ageMs: number
  /** Since the last byte, without pauses. */
  readonly quietMs: number
  /** Length of the current pause. 0 without one. */
  readonly pausedMs: number
  readonly receivedBytes: number
}

type BodyVerdict =
  | { readonly is: "fine" }
  /** The client's fault: answered 408 with this problem. */
  | { readonly is: "stalled"; readonly problem: string }
  /** The handler does not read the body. A paused connection does not show whether its client has left. */
  | { readonly is: "unread" }

export const judgeBody = (pace: BodyTimeouts, settings: TransportSettings): BodyVerdict => {
  if (pace.pausedMs > 0)
    return pace.pausedMs >= settings.bodyPauseTimeoutMs ? { is: "unread" } : { is: "fine" }
  if (pace.quietMs >= settings.bodyStallTimeoutMs) {
    return { is: "stalled", problem: `no data for ${settings.bodyStallTimeoutMs} ms` }
  }
  const slow =
    pace.ageMs >= settings.bodyGraceMs &&
    pace.receivedBytes < (pace.ageMs / 1_000) * settings.bodyBytesPerSecond
  return slow
    ? { is: "stalled", problem: `slower than ${settings.bodyBytesPerSecond} bytes a second` }
    : { is: "fine" }
}

// When a signing key is announced, used, and forgotten, so that a rotation never breaks a valid token. Pure, over times
// alone: SigningKeys holds the keys.
//
//   announced ──(announceMs)──▶ active ──▶ its successor is active ──(longest session)──▶ forgotten
//
// A key is published from its announcement to its end. Nobody meets a signature of a key that could not be fetched in
// time, and nobody loses a token because the key that signed it is gone.

export interface KeyTimes {
  /** From then on it may sign, until a younger key is active. */
  readonly activeAtMs: number
}

/** The longest session that can be configured: retired keys outlive every token they signed. */
export const maxSessionMs = 24 * 60 * 60 * 1000
/** Clocks of edges may be that wrong: the brief time in which an expired token still passes. */
export const clockSkewMs = 5_000

/** Twice the time for which an edge may keep a fetched key set (`keySetAgeSeconds`). */
export const announceMs = 10 * 60 * 1000
/** How long an edge may use a fetched key set before it asks again. */
export const keySetAgeSeconds = 300

const oldestFirst = <K extends KeyTimes>(keys: ReadonlyArray<K>): ReadonlyArray<K> =>
  keys.toSorted((a, b) => a.activeAtMs - b.activeAtMs)

/** The key that signs now. Where none is active yet, as after a clock was set back, the oldest must do. */
export const signingKey = <K extends KeyTimes>(keys: ReadonlyArray<K>, nowMs: number): K | undefined => {
  const sorted = oldestFirst(keys)
  return sorted.findLast((key) => key.activeAtMs <= nowMs) ?? sorted[0]
}

/** The keys that some valid token may be signed with, or soon will be. */
export const publishedKeys = <K extends KeyTimes>(keys: ReadonlyArray<K>, nowMs: number): ReadonlyArray<K> =>
  oldestFirst(keys).filter((_, i, sorted) => {
    const successor = sorted[i + 1]
    return successor === undefined || nowMs <= successor.activeAtMs + maxSessionMs + clockSkewMs
  })

/** When the next key should be active, where it is time to announce one; at once where there is none yet. */
export const nextKeyActiveAtMs = (
  keys: ReadonlyArray<KeyTimes>,
  nowMs: number,
  rotateEveryMs: number,
): number | undefined => {
  const youngest = oldestFirst(keys).at(-1)
  if (youngest === undefined) return nowMs
  const dueMs = youngest.activeAtMs + rotateEveryMs
  if (nowMs < dueMs - announceMs) return undefined
  return Math.max(dueMs, nowMs + announceMs)
}

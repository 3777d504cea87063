// When a signing key is published, used and deleted, so that a rotation never breaks a valid token. Pure, over times
// only.
//
//   published ──(announceMs)──▶ active ──▶ its successor is active ──(longest session)──▶ deleted
//
// A key is published some time before it signs, so that verifiers have fetched it by then, and until the last token
// that it signed has expired.

interface KeyTimes {
  /** From then on it signs, until a newer key is active. */
  readonly activeAtMs: number
}

/** The longest configurable session. A replaced key is kept this long, which outlives every token that it signed. */
export const maxSessionMs = 24 * 60 * 60 * 1000
/** Tolerance for the clocks of edges: an expired token is accepted for this long. */
export const clockSkewMs = 5_000

/**
 * Time between publishing a key and its first use: twice the time for which an edge may keep a fetched key set
 * (`keySetAgeSeconds`).
 */
export const announceMs = 10 * 60 * 1000
/** How long an edge may use a fetched key set before it fetches again. */
export const keySetAgeSeconds = 300

const oldestFirst = <K extends KeyTimes>(keys: ReadonlyArray<K>): ReadonlyArray<K> =>
  keys.toSorted((a, b) => a.activeAtMs - b.activeAtMs)

/** The key that signs now. If none is active yet, e.g. after a clock was set back, the oldest is used. */
export const signingKey = <K extends KeyTimes>(keys: ReadonlyArray<K>, nowMs: number): K | undefined => {
  const sorted = oldestFirst(keys)
  return sorted.findLast((key) => key.activeAtMs <= nowMs) ?? sorted[0]
}

/** The keys that a valid token may be signed with now or soon. */
export const publishedKeys = <K extends KeyTimes>(keys: ReadonlyArray<K>, nowMs: number): ReadonlyArray<K> =>
  oldestFirst(keys).filter((_, i, sorted) => {
    const successor = sorted[i + 1]
    return successor === undefined || nowMs <= successor.activeAtMs + maxSessionMs + clockSkewMs
  })

/** When the next key should become active, if it is time to publish one. At once if there is no key yet. */
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

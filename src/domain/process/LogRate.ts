// Limits the log lines of each kind per second and counts the suppressed ones, so that a crash loop or a burst of
// failing requests writes only a few lines a second. Pure; the caller passes the time.

/** Period for which the lines of a kind are counted. */
const windowMs = 1_000

/**
 * Kinds in the table. Kinds are made of event names, model ids and paths of the route table, so there are hundreds at
 * most; further ones share one kind.
 */
const maxKinds = 1_024

const sharedKind = "other"

interface Window {
  readonly sinceMs: number
  written: number
  suppressed: number
}

export class LogRate {
  readonly #windows = new Map<string, Window>()

  /**
   * The number of lines of this kind suppressed since the last one written, or undefined if this line is suppressed
   * too. `aSecond` lines of a kind may be written in a second that begins with a written line.
   */
  admit(kind: string, nowMs: number, aSecond = 1): number | undefined {
    const key = this.#keyOf(kind, nowMs)
    const window = this.#windows.get(key)
    const isOver = window === undefined || nowMs - window.sinceMs >= windowMs || nowMs < window.sinceMs
    if (!isOver && window.written >= aSecond) {
      window.suppressed++
      return undefined
    }
    const suppressed = window?.suppressed ?? 0
    if (isOver) this.#windows.set(key, { sinceMs: nowMs, written: 1, suppressed: 0 })
    else {
      window.written++
      window.suppressed = 0
    }
    return suppressed
  }

  get kinds(): number {
    return this.#windows.size
  }

  #keyOf(kind: string, nowMs: number): string {
    if (this.#windows.has(kind) || this.#windows.size < maxKinds) return kind
    for (const [known, { sinceMs, suppressed }] of this.#windows) {
      if (suppressed === 0 && nowMs - sinceMs >= windowMs) this.#windows.delete(known)
    }
    return this.#windows.size < maxKinds ? kind : sharedKind
  }
}

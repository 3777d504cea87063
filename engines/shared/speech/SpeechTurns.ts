// Whose piece is synthesised next. One native call runs at a time in an engine process; utterances come here
// between their pieces and the one whose listener would run dry first goes first. Called by running utterances;
// it knows deadlines and nothing of speech.
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

export interface Turns {
  /**
   * Waits for the turn, runs `work`, gives the turn on. `dueAtMs` is the latest moment at which the result is still
   * in time, on the clock of the caller. Interrupted while waiting, it leaves the line; the turn is given on however
   * `work` ends.
   */
  readonly take: <A, E, R>(dueAtMs: number, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Utterances in line, the running one not counted. */
  readonly waiting: () => number
}

interface Place {
  readonly dueAtMs: number
  readonly go: Deferred.Deferred<void>
}

/** The place to serve next: the earliest deadline, and of equal ones the one that came first. */
export const earliest = (places: ReadonlyArray<{ readonly dueAtMs: number }>): number => {
  let best = 0
  for (let i = 1; i < places.length; i++) if (places[i]!.dueAtMs < places[best]!.dueAtMs) best = i
  return best
}

export const makeTurns = (): Turns => {
  // Bounded by the requests that the host admits, one place each.
  const line: Array<Place> = []
  let busy = false

  const enter = (place: Place): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (!busy) {
        busy = true
        return Effect.void
      }
      line.push(place)
      return Deferred.await(place.go).pipe(Effect.onInterrupt(() => Effect.sync(() => leave(place))))
    })

  const leave = (place: Place): void => {
    const at = line.indexOf(place)
    // The turn had already been given to this place when the interruption came: give it on.
    if (at < 0) release()
    else line.splice(at, 1)
  }

  const release = (): void => {
    if (line.length === 0) {
      busy = false
      return
    }
    const [next] = line.splice(earliest(line), 1)
    Deferred.doneUnsafe(next!.go, Effect.void)
  }

  return {
    take: (dueAtMs, work) =>
      Effect.acquireUseRelease(
        Effect.interruptible(Effect.suspend(() => enter({ dueAtMs, go: Deferred.makeUnsafe<void>() }))),
        () => work,
        () => Effect.sync(release),
      ),
    waiting: () => line.length,
  }
}

// Long work on the event loop, in slices. All such work of the process takes turns: one slice in each turn of the loop, so that the
// sockets and timers of others come between, and twenty large bodies hold the loop no longer than one.
import { Effect } from "effect"

/** Milliseconds of a slice. A request that waits passes some turns of the loop before its first token, each longer by this. */
export const sliceMs = 1

/** Does a part of the work, until `isOver`. What it made; undefined if there is more to do. */
type Slice<A> = (isOver: () => boolean) => A | undefined

/** A slice of a work; true if it was the last one. */
type Turn = () => boolean

/** In the order of their turns. At most one entry for each request, event or connection that is read or written. */
const waiting: Array<Turn> = []
let isScheduled = false

const turn = (): void => {
  isScheduled = false
  const work = waiting.shift()
  if (work === undefined) return
  const hasEnded = work()
  if (!hasEnded) waiting.push(work)
  schedule()
}

const schedule = (): void => {
  if (isScheduled || waiting.length === 0) return
  isScheduled = true
  // Not a fiber's yield: fibers that yield run one after the other in the same turn of the loop.
  setImmediate(turn)
}

/** Gives a work its turns until its last slice. What is returned takes it out of the queue between two of them. */
export const takeTurns = (work: Turn): (() => void) => {
  waiting.push(work)
  schedule()
  return () => {
    const at = waiting.indexOf(work)
    if (at >= 0) waiting.splice(at, 1)
  }
}

/** Time that works of one turn of the loop may take before those that ask go on in a later one. A guess: the rest of 10 ms is for others. */
const turnMs = 4

/** When the present turn's first work asked; undefined where none has. */
let turnBeganMs: number | undefined

const turnEnds = (): void => {
  turnBeganMs = undefined
}

/** Whether works that asked before in this turn of the loop have taken that time since the first of them asked. */
export const isTurnOver = (): boolean => {
  const nowMs = performance.now()
  if (turnBeganMs === undefined) {
    turnBeganMs = nowMs
    setImmediate(turnEnds)
  }
  return nowMs - turnBeganMs >= turnMs
}

const laterTurn = Effect.suspend(() =>
  inSlices(() => {
    // What goes on now counts for the turn that it goes on in.
    isTurnOver()
    return true
  }),
)

/**
 * Completes at once, or in a later turn of the loop where this one has taken long already: for works of short parts, of which many may
 * come together, such as the events of sockets.
 */
export const betweenParts: Effect.Effect<void> = Effect.suspend(() =>
  isTurnOver() ? Effect.asVoid(laterTurn) : Effect.void,
)

/** Runs the slices of a work one after the other, each in a turn of the event loop. An interrupt ends it between two of them. */
export const inSlices = <A>(slice: Slice<A>): Effect.Effect<A> =>
  Effect.callback<A>((resume) => {
    const leave = takeTurns(() => {
      const untilMs = performance.now() + sliceMs
      try {
        const made = slice(() => performance.now() >= untilMs)
        if (made === undefined) return false
        resume(Effect.succeed(made))
      } catch (cause) {
        resume(Effect.die(cause))
      }
      return true
    })
    return Effect.sync(leave)
  })

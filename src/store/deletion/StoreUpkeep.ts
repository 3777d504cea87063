// What a node does for its store now and then: finishes interrupted deletions, sums receipts that are older than they are kept, and
// empties SQLite's log of what was deleted.
import { Clock, Effect, Layer, Schedule } from "effect"
import { Compaction } from "../sql/Compaction.ts"
import { Retention } from "../sql/Retention.ts"
import { Deletions } from "./Deletions.ts"

/** A guess: an interrupted deletion has taken the names out already. */
const resumeEveryMs = 60_000

/** Jobs, answers and receipts leave the store to the hour. */
const tidyEveryMs = 60 * 60_000

const logged = <A, E extends { readonly message: string }>(what: string, work: Effect.Effect<A, E>) =>
  work.pipe(
    Effect.catch((error) => Effect.logError(what, error.message)),
    Effect.catchDefect((cause) => Effect.logError(what, String(cause))),
  )

export const storeUpkeep: Layer.Layer<never, never, Deletions> = Layer.effectDiscard(
  Effect.gen(function* () {
    const deletions = yield* Deletions
    const { receiptMs } = yield* Retention
    const { emptyLogSoon } = yield* Compaction
    const tidy = Effect.gen(function* () {
      if (receiptMs !== undefined) {
        yield* deletions.summarize((yield* Clock.currentTimeMillis) - receiptMs)
      }
      emptyLogSoon()
    })
    yield* logged("a deletion could not be finished; will try again", deletions.resume).pipe(
      Effect.repeat(Schedule.spaced(resumeEveryMs)),
      Effect.forkScoped,
    )
    yield* logged("old receipts could not be summed; will try again", tidy).pipe(
      Effect.repeat(Schedule.spaced(tidyEveryMs)),
      Effect.forkScoped,
    )
  }),
)

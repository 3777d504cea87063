// What a node does for its store now and then: finishes interrupted deletions, sums exported receipts that are older than they are kept,
// and empties SQLite's log of what was deleted.
import { Effect, Layer, Schedule } from "effect"
import { ReceiptExports } from "../ledger/ReceiptExports.ts"
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

export const storeUpkeep: Layer.Layer<never, never, Deletions | ReceiptExports> = Layer.effectDiscard(
  Effect.gen(function* () {
    const deletions = yield* Deletions
    const { fold } = yield* ReceiptExports
    const { receiptMs } = yield* Retention
    const { emptyLogSoon } = yield* Compaction
    let didWait = false
    const tidy = Effect.gen(function* () {
      if (receiptMs !== undefined) {
        const { areOthersWaiting } = yield* fold(receiptMs)
        // Once for each time that an export was forgotten.
        if (areOthersWaiting && !didWait) {
          yield* Effect.logWarning(
            "receipts older than EDGEWISE_RECEIPT_DAYS are kept until they are exported: edgewise receipts export",
          )
        }
        didWait = areOthersWaiting
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

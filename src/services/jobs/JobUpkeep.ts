// Maintenance of stored jobs: recovery at the start of the node, failing the jobs of nodes that have not come back, and removing
// jobs that ended long ago.
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schedule } from "effect"
import type { ChildSpec } from "#actors/Child.ts"
import * as Specifications from "#actors/Specifications.ts"
import { removeSpooled } from "#audio/SpoolFile.ts"
import type { Jobs } from "#store/ledger/Jobs.ts"
import { isAnothersRing, ringFolder } from "../TranscriptionAudio.ts"

const purgeEveryMs = 3_600_000

/** Interval of `failLost`. A guess: short beside `lostMs` of Jobs, the time that such jobs have waited already. */
const lostEveryMs = 60_000

/** Removes files that no unfinished job needs. A crash leaves them between an upload and its row, after a job's end, or in a slice. */
const removeOrphans = (dir: string, needed: ReadonlySet<string>) =>
  Effect.promise(async () => {
    const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = join(dir, entry.name)
      if (!entry.isDirectory() && !needed.has(path) && !isAnothersRing(entry.name)) await removeSpooled(path)
    }
  })

/** Returns the running jobs of the previous process to the queue. Call it before any job is taken. */
export const recoverJobs = (jobs: Jobs["Service"], uploads: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* jobs.recover
    yield* removeOrphans(uploads, yield* jobs.uploads)
    yield* removeOrphans(ringFolder(uploads), new Set())
  })

/** Fails the jobs of nodes that have not been seen for `lostMs` of Jobs. */
export const failLostJobs = (jobs: Jobs["Service"]): ChildSpec<unknown, never, never> => ({
  ...Specifications.worker,
  name: "lost jobs",
  run: ({ ready }) =>
    Effect.andThen(
      Effect.sync(ready),
      jobs.failLost.pipe(
        Effect.tap((count) =>
          count === 0
            ? Effect.void
            : Effect.logWarning("transcription jobs of nodes that have not come back have failed").pipe(
                Effect.annotateLogs({ jobs: count }),
              ),
        ),
        Effect.catchDefect((cause) => Effect.logError("lost jobs could not be failed", String(cause))),
        Effect.repeat(Schedule.spaced(lostEveryMs)),
      ),
    ),
})

/** Removes the rows of jobs that ended a day ago. */
export const purgeJobs = (jobs: Jobs["Service"]): ChildSpec<unknown, never, never> => ({
  ...Specifications.worker,
  name: "old jobs",
  run: ({ ready }) =>
    Effect.andThen(
      Effect.sync(ready),
      jobs.purge.pipe(
        Effect.catchDefect((cause) => Effect.logError("old jobs could not be removed", String(cause))),
        Effect.repeat(Schedule.spaced(purgeEveryMs)),
      ),
    ),
})

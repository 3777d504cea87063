// Maintenance of stored jobs: recovery at the start of the node, moving or failing the jobs of nodes that are dead, and removing jobs that
// ended long ago and shared uploads that no job needs.
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schedule } from "effect"
import type { ChildSpec } from "#actors/Child.ts"
import * as Specifications from "#actors/Specifications.ts"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import type { Jobs } from "#store/ledger/Jobs.ts"
import type { PresenceView } from "#store/nodes/Presence.ts"
import { isAnothersRing, ringFolder } from "../TranscriptionAudio.ts"
import { removedModelMs } from "./JobEnd.ts"
import type { SharedUploadsView } from "./SharedUploads.ts"

const purgeEveryMs = 3_600_000

/** Interval of `failLost`. A guess: short beside `LostAfter` of Jobs, the time that such jobs have waited already. */
const lostEveryMs = 60_000

/** How soon after a beat the jobs of dead nodes are moved, at most. A guess: short beside the 15 s until a node counts as dead. */
const takeOverEveryMs = 250

/** Names that are compared with the jobs in one statement. */
const namesAtOnce = 500

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

/**
 * A worker that does a step at intervals.
 * @param failure logged where a step dies, because the database does not answer; the next one follows all the same
 */
const atIntervals = (
  name: string,
  everyMs: number,
  failure: string,
  step: Effect.Effect<unknown>,
): ChildSpec<unknown, never, never> => ({
  ...Specifications.worker,
  name,
  run: ({ ready }) =>
    Effect.andThen(
      Effect.sync(ready),
      step.pipe(
        Effect.catchDefect((cause) => Effect.logError(failure, String(cause))),
        Effect.repeat(Schedule.spaced(everyMs)),
      ),
    ),
})

/** Puts the shared jobs of dead nodes back into the queue, once after each beat that knows of a dead node. */
export const takeOverJobs = (jobs: Jobs["Service"], { beats }: PresenceView, wake: () => void) => {
  let done = beats()
  const takeOver = Effect.gen(function* () {
    const beat = beats()
    if (beat === done) return
    const moved = yield* jobs.takeOver
    done = beat
    if (moved === 0) return
    wake()
    yield* Effect.logWarning("transcription jobs of a dead node go on elsewhere").pipe(
      Effect.annotateLogs({ jobs: moved }),
    )
  })
  return atIntervals("jobs of dead nodes", takeOverEveryMs, "jobs of dead nodes could not be moved", takeOver)
}

/** Interval of the look for models that no node has. A guess: short beside `removedModelMs`. */
const unservedEveryMs = 30_000

/** Fails shared jobs whose model no node that runs has had for `removedModelMs`. */
export const failUnservedJobs = (
  jobs: Jobs["Service"],
  own: () => ReadonlyArray<string>,
  { others }: PresenceView,
) => {
  /** Model → since when this node knows of no node that has it; `monotonicMs`. */
  let missing: ReadonlyMap<string, number> = new Map()
  const look = Effect.gen(function* () {
    const served = [...own(), ...others().flatMap(({ offer }) => offer.models)]
    const nowMs = yield* monotonicMs
    const unserved = yield* jobs.unservedModels(served)
    missing = new Map(unserved.map((model) => [model, missing.get(model) ?? nowMs]))
    for (const [model, sinceMs] of missing) {
      if (nowMs - sinceMs < removedModelMs) continue
      const failed = yield* jobs.failUnserved(model)
      yield* Effect.logWarning("transcription jobs have failed: no node has their model").pipe(
        Effect.annotateLogs({ model, jobs: failed }),
      )
    }
  })
  return atIntervals("jobs without a model", unservedEveryMs, "models of jobs could not be read", look)
}

/** Removes files of the shared place that are older than a day and that no job needs. One node at a time does it. */
export const removeOldUploads = (jobs: Jobs["Service"], uploads: SharedUploadsView) => {
  const sweep = Effect.gen(function* () {
    const names = yield* uploads.old
    for (let at = 0; at < names.length; at += namesAtOnce) {
      for (const name of yield* jobs.unneeded(names.slice(at, at + namesAtOnce))) yield* uploads.remove(name)
    }
  }).pipe(
    Effect.catch(({ problem }) =>
      Effect.logWarning("old shared uploads could not be listed").pipe(Effect.annotateLogs({ problem })),
    ),
  )
  return atIntervals(
    "old uploads",
    purgeEveryMs,
    "old shared uploads could not be removed",
    jobs.byOneNode(sweep),
  )
}

/** Fails the jobs of nodes that are dead for `LostAfter` of Jobs. */
export const failLostJobs = (jobs: Jobs["Service"]) =>
  atIntervals(
    "lost jobs",
    lostEveryMs,
    "lost jobs could not be failed",
    Effect.tap(jobs.failLost, (count) =>
      count === 0
        ? Effect.void
        : Effect.logWarning("transcription jobs of nodes that have not come back have failed").pipe(
            Effect.annotateLogs({ jobs: count }),
          ),
    ),
  )

/** Removes the rows of jobs that ended a day ago. */
export const purgeJobs = (jobs: Jobs["Service"]) =>
  atIntervals("old jobs", purgeEveryMs, "old jobs could not be removed", jobs.purge)

// One slice of a job: from where it stopped to the end of its file, of its organization's money or of the slice. JobActor
// runs it and decides what follows.
import { Effect, Exit, Schema, type Scope } from "effect"
import type { Model } from "#actors/model/Model.ts"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { LISTEN_RATE_HZ, samplesToMs } from "#domain/audio/Audio.ts"
import type { Transcript, TranscriptProgress } from "#domain/audio/Transcript.ts"
import { costOf } from "#domain/models/Money.ts"
import { audioUsage } from "#domain/models/Usage.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { isTransient } from "#domain/wire/JobRetry.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import type { Job } from "#store/ledger/Jobs.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { findModel } from "../ModelLookup.ts"
import { runTranscription } from "../TranscriptionRun.ts"

/** Another organization's job has waited while this one had its share, or a reload has replaced the model. */
export class SliceOver extends Schema.TaggedError<SliceOver>()("SliceOver", {}) {}

/** State of an unfinished job between its slices, in memory. */
export interface Kept {
  progress: TranscriptProgress | undefined
  /** Milliseconds of audio that have been decoded so far. */
  decodedMs: number | undefined
  /** Failures of the engine since the last progress. */
  engineFailures: number
  /** Its owner has cancelled it. */
  cancelled: boolean
  /** The model of its last slice: the tokens of `progress` are valid for its weights only. */
  model: Model<"transcription"> | undefined
  /** Since when the node has found no such model, milliseconds since 1970. */
  missingSinceMs: number | undefined
}

export const newKept = (decodedMs: number | undefined): Kept => ({
  progress: undefined,
  decodedMs,
  engineFailures: 0,
  cancelled: false,
  model: undefined,
  missingSinceMs: undefined,
})

/** Where a job goes on; without the last slice's tokens where a reload has replaced its model meanwhile. */
const progressOn = (kept: Kept, model: Model<"transcription"> | undefined): TranscriptProgress | undefined =>
  kept.progress === undefined || kept.model === model
    ? kept.progress
    : { ...kept.progress, previousTokens: [] }

/**
 * Windows of one slice where others wait: 10 minutes of audio in windows of 30 s. A guess: starting a slice decodes the
 * file up to where it stopped, 1/500 of its length.
 */
const windowsOfSlice = 20

/** A key that was revoked ends its jobs; everything else is the job's own. */
export const takeSlice = (
  job: Job,
  kept: Kept,
  othersWait: Effect.Effect<boolean>,
): Effect.Effect<
  Transcript,
  EdgeError | SliceOver,
  Scope.Scope | Accounts | Decoder | ModelRegistry | UsageLedger
> =>
  Effect.gen(function* () {
    const principal = yield* (yield* Accounts).principalOf(job.keyId)
    const handle = yield* findModel(job.model, "transcription")
    const model = handle.current()
    const from = progressOn(kept, model)
    kept.model = model
    kept.missingSinceMs = undefined
    const { granularities, language, prompt, punctuation, temperature } = job.options
    let windows = 0
    return yield* runTranscription<SliceOver>({
      principal,
      model: handle,
      path: job.uploadPath,
      options: {
        language: language ?? undefined,
        prompt,
        punctuation: punctuation ?? undefined,
        temperature,
        words: granularities.includes("word"),
      },
      background: true,
      receiptId: job.id,
      from,
      knownMs: kept.decodedMs,
      onStarted: () => {},
      onSegment: () => {},
      beforeWindow: (decodedSamples) =>
        Effect.suspend(() => {
          const decodedMs = Math.ceil(samplesToMs(decodedSamples, LISTEN_RATE_HZ))
          kept.decodedMs = Math.max(kept.decodedMs ?? 0, decodedMs)
          // A reload has replaced the model: it need not wait for this file, which goes on with the new one.
          const current = handle.current()
          if (current !== undefined && current !== model) return Effect.fail(new SliceOver())
          return windows++ === 0 || windows % windowsOfSlice !== 0
            ? Effect.void
            : Effect.flatMap(othersWait, (wait) => (wait ? Effect.fail(new SliceOver()) : Effect.void))
        }),
      onProgress: (progress) => {
        kept.progress = progress
        kept.engineFailures = 0
      },
      // A job that goes on later is charged then; a node that stops interrupts it as well as its owner does.
      charged: (exit) => {
        const error = Exit.findErrorOption(exit)
        return error._tag === "Some"
          ? error.value._tag !== "SliceOver" && !isTransient(error.value)
          : kept.cancelled
      },
    })
  })

/**
 * Charges a job that was cancelled between two slices, if its organization can pay. One that was cancelled during a slice
 * has been charged by its end: a receipt of the same id is written once.
 */
export const chargeCancelled = (
  job: Job,
  { samples }: TranscriptProgress,
): Effect.Effect<void, never, Accounts | ModelRegistry | UsageLedger> =>
  Effect.gen(function* () {
    const ledger = yield* UsageLedger
    const principal = yield* (yield* Accounts).principalOf(job.keyId)
    const { entry } = yield* findModel(job.model, "transcription")
    const usage = audioUsage("transcription", samples, LISTEN_RATE_HZ)
    const microDollars = costOf(entry.price, usage)
    const reservation = yield* ledger.reserve(principal, microDollars)
    yield* ledger.settle(reservation, { model: entry.id, usage, microDollars, receiptId: job.id })
  }).pipe(Effect.scoped, Effect.ignore)

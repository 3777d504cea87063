// One slice of a job: transcribes from where the previous slice stopped until the file ends, the organization's credit is used up,
// or the slice is over. The caller stores the outcome.
import { Effect, Exit, Schema, type Scope } from "effect"
import type { Model } from "#actors/model/Model.ts"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { listenRateHz, samplesToMs } from "#domain/audio/Audio.ts"
import type { Transcript, TranscriptProgress } from "#domain/audio/Transcript.ts"
import { costOf } from "#domain/models/Money.ts"
import { audioUsage } from "#domain/models/Usage.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { isTransient } from "#domain/wire/JobRetry.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import type { Job } from "#store/ledger/JobRows.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { findModel } from "../ModelLookup.ts"
import { runTranscription } from "../TranscriptionRun.ts"

/** The job must continue in a later slice: another organization's job waits, or a reload has replaced the model. */
export class SliceOver extends Schema.TaggedError<SliceOver>()("SliceOver", {}) {}

/** State of an unfinished job between its slices, in memory. */
export interface Kept {
  progress: TranscriptProgress | undefined
  /** Milliseconds of audio decoded so far. */
  decodedMs: number | undefined
  /** Failures of the engine since the last progress. */
  engineFailures: number
  /** Its owner has cancelled it. */
  cancelled: boolean
  /** The model of its last slice: the tokens of `progress` are valid for its weights only. */
  model: Model<"transcription"> | undefined
  /** When the node first found no such model; `monotonicMs`. */
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

/** The progress from which a job continues, without the last slice's tokens if a reload has replaced its model. */
const progressOn = (kept: Kept, model: Model<"transcription"> | undefined): TranscriptProgress | undefined =>
  kept.progress === undefined || kept.model === model
    ? kept.progress
    : { ...kept.progress, previousTokens: [] }

/**
 * Windows of one slice if jobs of other organizations wait: 10 minutes of audio in windows of 30 s. A guess: the start of a slice
 * decodes the file up to where the previous one stopped, which takes 1/500 of that duration.
 */
const windowsOfSlice = 20

/** Runs one slice. Fails at once if the key of the job has been revoked. */
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
          const decodedMs = Math.ceil(samplesToMs(decodedSamples, listenRateHz))
          kept.decodedMs = Math.max(kept.decodedMs ?? 0, decodedMs)
          // If a reload has replaced the model, the file continues with the new one, so that the old one can be unloaded.
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
      // A job that continues later is charged then. Both its owner and a node that stops interrupt it; only the owner sets `cancelled`.
      charged: (exit) => {
        const error = Exit.findErrorOption(exit)
        return error._tag === "Some"
          ? error.value._tag !== "SliceOver" && !isTransient(error.value)
          : kept.cancelled
      },
    })
  })

/**
 * Charges a job that was cancelled between two slices, if its organization can pay. The end of a slice has already charged a job
 * that was cancelled during it; then this has no effect, because a receipt of one id is written only once.
 */
export const chargeCancelled = (
  job: Job,
  { samples }: TranscriptProgress,
): Effect.Effect<void, never, Accounts | ModelRegistry | UsageLedger> =>
  Effect.gen(function* () {
    const ledger = yield* UsageLedger
    const principal = yield* (yield* Accounts).principalOf(job.keyId)
    const { entry } = yield* findModel(job.model, "transcription")
    const usage = audioUsage("transcription", samples, listenRateHz)
    const microDollars = costOf(entry.price, usage)
    const reservation = yield* ledger.reserve(principal, microDollars)
    yield* ledger.settle(reservation, { model: entry.id, usage, microDollars, receiptId: job.id })
  }).pipe(Effect.scoped, Effect.ignore)

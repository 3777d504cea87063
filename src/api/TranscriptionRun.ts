// One file transcribed on behalf of a caller: decoded, paid for as it goes, charged by what was transcribed.
// Both the handlers that answer at once and the job workers go through here.
import { Effect, Scope } from "effect"
import { ModelRegistry } from "#actors/ModelRegistry.ts"
import { type TranscribeOptions, transcribeFile } from "#actors/Transcriber.ts"
import { Decoder } from "#audio/Decoder.ts"
import { LISTEN_RATE_HZ } from "#domain/Audio.ts"
import { AtCapacity, InvalidRequest, ModelNotLoaded, type PaymentRequired } from "#domain/Errors.ts"
import type { ModelEntry } from "#domain/Model.ts"
import { costOf } from "#domain/Money.ts"
import type { Transcript, TranscriptSegment } from "#domain/Transcript.ts"
import { audioUsage } from "#domain/Usage.ts"
import type { Principal } from "#store/Accounts.ts"
import { type Reservation, UsageLedger } from "#store/UsageLedger.ts"
import type { EdgeError } from "./ErrorBody.ts"

/** A deployed model that transcribes. */
export const transcriptionModel = (
  id: string,
): Effect.Effect<ModelEntry, InvalidRequest | ModelNotLoaded, ModelRegistry> =>
  Effect.gen(function* () {
    const view = (yield* ModelRegistry).find(id)
    if (view === undefined) return yield* new ModelNotLoaded({ model: id })
    if (view.entry.kind !== "transcription") {
      return yield* new InvalidRequest({ field: "model", problem: `${id} does not transcribe` })
    }
    return view.entry
  })

export interface TranscriptionRun {
  readonly principal: Principal
  readonly entry: ModelEntry
  readonly path: string
  readonly options: TranscribeOptions
  readonly background: boolean
  /** A job's id, so that a job that runs twice is charged once. */
  readonly receiptId?: string
  /** Audio known to be there from an earlier run: all of it is reserved before anything is done. */
  readonly knownMs?: number
  readonly onSegment: (segment: TranscriptSegment) => void
  /** Samples decoded by now; a job keeps it for its next run. */
  readonly onDecoded?: (samples: number) => void
}

/** Money is set aside for this much audio at a time, so that a long file needs no guess about its length. */
const reserveStepMs = 60_000

const noAudio = (detail: string) => new InvalidRequest({ field: "file", problem: detail })

/** Sets money aside for what has been decoded, a step at a time. */
const makeReserve = Effect.fnUntraced(function* (run: TranscriptionRun) {
  const ledger = yield* UsageLedger
  const reservations: Array<Reservation> = []
  let reservedMs = 0
  const upTo = (ms: number): Effect.Effect<void, PaymentRequired, Scope.Scope> =>
    Effect.gen(function* () {
      while (reservedMs < ms) {
        const stepMs = Math.max(reserveStepMs, run.knownMs === undefined ? 0 : run.knownMs - reservedMs)
        const cost = costOf(run.entry.price, audioUsage("transcription", stepMs, 1000))
        reservations.push(yield* ledger.reserve(run.principal, cost))
        reservedMs += stepMs
      }
    })
  /** Charges what was transcribed, and gives the rest back. */
  const settle = (samples: number): Effect.Effect<void> =>
    Effect.gen(function* () {
      const [first, ...others] = reservations
      for (const reservation of others) yield* ledger.cancel(reservation)
      if (first === undefined) return
      if (samples === 0) return yield* ledger.cancel(first)
      const usage = audioUsage("transcription", samples, LISTEN_RATE_HZ)
      yield* ledger.settle(first, {
        model: run.entry.id,
        usage,
        microDollars: costOf(run.entry.price, usage),
        ...(run.receiptId === undefined ? {} : { receiptId: run.receiptId }),
      })
    })
  return { upTo, settle }
})

export const runTranscription = (
  run: TranscriptionRun,
): Effect.Effect<Transcript, EdgeError, Scope.Scope | Decoder | ModelRegistry | UsageLedger> =>
  Effect.gen(function* () {
    const decoder = yield* Decoder
    const reserve = yield* makeReserve(run)
    const scope = yield* Effect.scope
    // The first step before decoding: an organization without money shall not cost any work.
    yield* reserve.upTo(run.knownMs ?? 1)
    const toEdgeError = (error: {
      readonly _tag: string
      readonly detail: string
      readonly reason: string
    }) =>
      error._tag === "DecoderFailed" && error.reason === "Busy"
        ? new AtCapacity({ model: run.entry.id, retryAfterMs: 5_000 })
        : noAudio(error.detail)
    const decoded = yield* decoder.decode(run.path).pipe(Effect.mapError(toEdgeError))
    let transcribed = 0
    return yield* transcribeFile<EdgeError>({
      modelId: run.entry.id,
      options: run.options,
      background: run.background,
      pull: Effect.mapError(decoded.pull, toEdgeError),
      beforeWindow: (samples) => {
        run.onDecoded?.(samples)
        return Effect.provideService(
          reserve.upTo(Math.ceil(samples / (LISTEN_RATE_HZ / 1000))),
          Scope.Scope,
          scope,
        )
      },
      onSegment: run.onSegment,
      onProgress: (samples) => {
        transcribed = samples
      },
    }).pipe(Effect.onExit(() => reserve.settle(transcribed)))
  })

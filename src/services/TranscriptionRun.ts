// Transcribes one file of a caller: decodes it, reserves money as it goes on, charges once at the end.
import { Effect, type Exit, Scope } from "effect"
import type { RunError } from "#actors/engine/EngineRequest.ts"
import { type TranscribeOptions, transcribeFile } from "#actors/jobs/FileTranscription.ts"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { listenRateHz, samplesToMs } from "#domain/audio/Audio.ts"
import {
  hasCues,
  type Transcript,
  type TranscriptProgress,
  type TranscriptSegment,
} from "#domain/audio/Transcript.ts"
import { type PunctuationChoice, punctuationProblem } from "#domain/language/Punctuated.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { costOf } from "#domain/models/Money.ts"
import { audioUsage } from "#domain/models/Usage.ts"
import { InvalidRequest, type ModelNotLoaded, type PaymentRequired } from "#domain/wire/Errors.ts"
import { CurrentRequest, nowMs } from "#http/RequestContext.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { JobOptions } from "#store/ledger/JobRows.ts"
import { type Reservation, type Settlement, UsageLedger } from "#store/ledger/UsageLedger.ts"
import { type AudioError, openAudio } from "./TranscriptionAudio.ts"
import { untilStoreWorks } from "./UntilStoreWorks.ts"

/** What a request or a job asks for, as the transcriber takes it. */
export const runOptions = ({
  format,
  granularities,
  keywords,
  language,
  prompt,
  punctuation,
  temperature,
}: JobOptions): TranscribeOptions => ({
  language: language ?? undefined,
  prompt,
  punctuation: punctuation ?? undefined,
  temperature,
  words: hasCues(format) || granularities.includes("word"),
  ...(keywords === undefined ? {} : { keywords }),
})

/** Languages of the preset `cohere-transcribe`, which are those that `stt-multi-03-2026` promises (protocol 9.1). */
const promised = ["ar", "de", "el", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "vi", "zh"]

/** What brings weights that know the language in place of built-in ones; empty where nothing is known to. */
const adviceOn = ({ demonstration, id }: ModelEntry, language: string): string =>
  demonstration && promised.includes(language)
    ? `; weights that know it: edgewise models add cohere-transcribe --as ${id}`
    : ""

/** Refuses a language that the model does not know. Before it has loaded, the engine itself refuses the first window. */
export const checkLanguage = (
  model: ModelHandle<"transcription">,
  language: string | undefined,
): Effect.Effect<void, InvalidRequest> =>
  Effect.suspend(() => {
    const languages = model.facts()?.languages
    if (language === undefined || languages === undefined || languages.includes(language)) return Effect.void
    const advice = adviceOn(model.entry, language)
    const problem = `${model.entry.id} does not know ${language}; it knows ${languages.join(", ")}${advice}`
    return Effect.fail(new InvalidRequest({ field: "language", problem }))
  })

const isLanguageRefusal = (error: unknown): error is InvalidRequest =>
  error instanceof InvalidRequest && error.field === "language"

/** Refuses a model that does not translate. Before it has loaded, the engine itself refuses the first window. */
export const checkTranslates = (model: ModelHandle<"transcription">): Effect.Effect<void, InvalidRequest> =>
  Effect.suspend(() => {
    const facts = model.facts()
    if (facts === undefined || facts.translates === true) return Effect.void
    const problem = `${model.entry.id} does not translate; a Whisper model of many languages does`
    return Effect.fail(new InvalidRequest({ field: "model", problem }))
  })

/** Refuses punctuation that cannot be added in the language, as far as that is known. */
export const checkPunctuation = (
  { transcription }: ModelEntry,
  choice: PunctuationChoice,
  language: string | undefined,
): Effect.Effect<void, InvalidRequest> => {
  const problem = punctuationProblem(choice, language ?? transcription?.defaultLanguage)
  return problem === undefined
    ? Effect.void
    : Effect.fail(new InvalidRequest({ field: "punctuation", problem }))
}

type TranscriptionError = RunError | AudioError | ModelNotLoaded | PaymentRequired

export interface TranscriptionRun<E> {
  readonly principal: Principal
  readonly model: ModelHandle<"transcription">
  readonly path: string
  readonly options: TranscribeOptions
  readonly background: boolean
  /** A job's id, so that a job that runs twice is charged once. */
  readonly receiptId?: string
  /** Takes over what is to be charged. Absent: the run charges it at its end. */
  readonly settle?: (reservation: Reservation, settlement: Settlement) => Effect.Effect<void>
  /** The position where an earlier run stopped. */
  readonly from?: TranscriptProgress | undefined
  /** Length of the audio as known from an earlier run: all of it is reserved before anything is done. */
  readonly knownMs?: number | undefined
  /** The engine has accepted the request. */
  readonly onStarted: () => void
  readonly onSegment: (segment: TranscriptSegment) => void
  /** Called before each window with the samples decoded so far; may stop the run. */
  readonly beforeWindow?: (decodedSamples: number) => Effect.Effect<void, E>
  readonly onProgress?: (progress: TranscriptProgress) => void
  /** Whether what has been transcribed is charged when the run ends with this exit; success always is. */
  readonly charged: (exit: Exit.Failure<Transcript, TranscriptionError | E>) => boolean
}

/** Reserves money for what has been decoded, to the millisecond: a caller who can pay for a file gets all of it. */
const makeReserve = Effect.fnUntraced(function* <E>(run: TranscriptionRun<E>) {
  const ledger = yield* UsageLedger
  const scope = yield* Effect.scope
  const notes = yield* CurrentRequest
  const reservations: Array<Reservation> = []
  let reserved = 0
  const upTo = (ms: number): Effect.Effect<void, PaymentRequired> =>
    Effect.gen(function* () {
      const cost = costOf(run.model.entry.price, audioUsage("transcription", ms, 1000))
      if (reservations.length > 0 && cost <= reserved) return
      reservations.push(yield* Scope.provide(ledger.reserve(run.principal, cost - reserved), scope))
      if (reservations[0] !== undefined) notes.reserved(reservations[0])
      reserved = cost
    })
  const release = Effect.suspend(() => Effect.forEach(reservations, ledger.cancel, { discard: true }))
  /** Charges what was transcribed, and releases the rest of the reservation. */
  const settle = (samples: number): Effect.Effect<void> =>
    Effect.gen(function* () {
      const first = reservations.shift()
      yield* release
      if (first === undefined) return
      if (samples === 0) return yield* ledger.cancel(first)
      const usage = audioUsage("transcription", samples, listenRateHz)
      const settlement: Settlement = {
        model: run.model.entry.id,
        usage,
        microDollars: costOf(run.model.entry.price, usage),
        ...(run.receiptId === undefined ? {} : { receiptId: run.receiptId }),
      }
      yield* run.settle?.(first, settlement) ?? Effect.asVoid(ledger.settle(first, settlement))
    })
  return { upTo, settle, release }
})

export const runTranscription = <E = never>(
  run: TranscriptionRun<E>,
): Effect.Effect<Transcript, TranscriptionError | E, Scope.Scope | Decoder | UsageLedger> =>
  Effect.gen(function* () {
    const reserve = yield* makeReserve(run)
    // No client waits for a job: it goes on when the store works again.
    const patient = <A, F>(step: Effect.Effect<A, F>) => (run.background ? untilStoreWorks(step) : step)
    // Before decoding: no work is done for an organization without money.
    yield* patient(reserve.upTo(Math.max(1, run.knownMs ?? 0)))
    const notes = yield* CurrentRequest
    const askedMs = nowMs()
    let transcribed = run.from?.samples ?? 0
    const audio = yield* openAudio(run.model.entry.id, run.path, transcribed, {
      user: run.principal.userId,
      urgency: run.background ? "background" : "interactive",
    })
    return yield* transcribeFile<TranscriptionError | E>({
      model: run.model,
      options: run.options,
      background: run.background,
      user: run.principal.userId,
      from: run.from,
      audio,
      beforeWindow: (samples) =>
        Effect.andThen(
          // The caller's own function first: it records how much was decoded even if that cannot be paid for.
          patient(run.beforeWindow?.(samples) ?? Effect.void),
          patient(reserve.upTo(Math.ceil(samplesToMs(samples, listenRateHz)))),
        ),
      onStarted: () => {
        notes.accepted(askedMs, run.model.entry.id)
        run.onStarted()
      },
      onSegment: (segment) => {
        notes.firstUnit()
        run.onSegment(segment)
      },
      onTranscribed: (samples) => {
        transcribed = samples
      },
      ...(run.onProgress === undefined ? {} : { onProgress: run.onProgress }),
    }).pipe(
      // The engine's own refusal, before its languages were known.
      Effect.mapError((error) =>
        isLanguageRefusal(error)
          ? new InvalidRequest({
              field: error.field,
              problem: error.problem + adviceOn(run.model.entry, run.options.language ?? ""),
            })
          : error,
      ),
      Effect.onExit((exit) =>
        exit._tag === "Success" || run.charged(exit) ? reserve.settle(transcribed) : reserve.release,
      ),
    )
  })

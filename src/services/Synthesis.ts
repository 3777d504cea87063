// One speech synthesis of a caller, from its reservation to its last sample: admission, start, reading, the charge for
// what was delivered. The speech handler prepares the text and encodes the samples; this file knows no audio format.
import { Deferred, Effect } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { samplesToMs, secondsToSamples, speechRateHz } from "#domain/audio/Audio.ts"
import { PlaybackClock } from "#domain/audio/PlaybackClock.ts"
import { isMixture } from "#domain/models/PresetVoices.ts"
import { audioUsage, type Usage } from "#domain/models/Usage.ts"
import { SynthesisFailed } from "#domain/wire/Errors.ts"
import { longestSpeechMs } from "#domain/wire/Speech.ts"
import type { Reader } from "#engines/protocol/Reader.ts"
import type { PcmChunk, SynthesizeRequest } from "#engines/protocol/Speech.ts"
import { CurrentRequest, nowMs } from "#http/RequestContext.ts"
import type { Reservation } from "#store/ledger/UsageLedger.ts"
import { Caller } from "./Caller.ts"
import { voicesOf } from "./ModelLookup.ts"
import { beginRun, type ModelRun, type ModelRunError } from "./ModelRun.ts"
import { SpeechAdmission, type SpeechModel } from "./SpeechAdmission.ts"

/**
 * Longest speech of one reply, the same in every format: an hour, 172 MB as PCM. 4,096 characters of prose are five
 * minutes, 20 at the slowest speed; digits and a speed of 0.25 could come to two hours. A guess.
 */
const maxSamples = secondsToSamples(3_600, speechRateHz)

type SynthesisError = ModelRunError | SynthesisFailed

/** The most that a text can cost. */
export const speechAtMost = (text: string, speed: number): Usage =>
  audioUsage("speech", Math.ceil(longestSpeechMs(text) / speed), 1000)

/** Fields that a caller can put right. The others are answered 502 (protocol 8.6, protocol 8.9), an unknown preset too. */
const callersFields = (isPreset: boolean): ReadonlyArray<string> =>
  isPreset ? ["language", "speed"] : ["voice", "language", "speed"]

/** An engine that cannot make this voice or text audible is an upstream failure, except for a bad clip. */
const synthesisError =
  (handle: ModelHandle<"speech">, { voice }: SynthesizeRequest) =>
  (error: ModelRunError): SynthesisError => {
    const model = handle.entry.id
    const isPreset = handle.entry.speech?.cloning !== true && "preset" in voice && !isMixture(voice.preset)
    if (error._tag === "EngineFailed")
      return new SynthesisFailed({ model, detail: `the engine ${error.reason}: ${error.detail}` })
    if (error._tag !== "InvalidRequest" || callersFields(isPreset).includes(error.field)) return error
    const { field, problem } = error
    const refused = { model, detail: `${field}: ${problem}`, field }
    return new SynthesisFailed(field === "voice" ? { ...refused, voices: voicesOf(handle) } : refused)
  }

interface SynthesisSpec {
  readonly model: ModelHandle<"speech">
  readonly request: SynthesizeRequest
  readonly reservation: Reservation
}

export interface Synthesis {
  readonly flow: ModelRun<"speech">["flow"]
  /** Sends all chunks to `reader`, those that arrived earlier first, each with the words that begin with it. Called once. */
  readonly read: (reader: Reader<PcmChunk>) => void
  /** Completes with the first audio; fails if there is none. Until then the reply can still be a refusal. */
  readonly audible: Effect.Effect<void, SynthesisError>
  /** Counts samples that were sent to the client: they are charged when the scope closes. */
  readonly delivered: (samples: number) => void
  /** Samples that the engine has made so far. */
  readonly made: () => number
  /** Ends when all chunks have been read; the number of samples. */
  readonly end: Effect.Effect<number, SynthesisError>
}

/** The model's current state, for admission. */
const speechModelNow = (model: ModelHandle<"speech">): SpeechModel => {
  const { open = 0, waiting = 0 } = model.current()?.view().host?.gauges() ?? {}
  return {
    id: model.entry.id,
    waitingLine: model.entry.runtime.waitingLine,
    taken: open + waiting,
    facts: model.facts(),
  }
}

/** Starts a synthesis; returns when the engine has accepted its request. */
export const beginSynthesis = Effect.fnUntraced(function* ({ model, request, reservation }: SynthesisSpec) {
  const admission = yield* SpeechAdmission
  const { entry } = model
  const now = () => speechModelNow(model)
  const { leave, sounded } =
    request.priority === "batch"
      ? yield* admission.batch(now())
      : yield* admission.stream(now(), request.speed)
  const early: Array<PcmChunk> = []
  const first = Deferred.makeUnsafe<void>()
  const tooLong = Deferred.makeUnsafe<never, SynthesisFailed>()
  let reader: Reader<PcmChunk> = { take: (chunk) => void early.push(chunk) }
  let samplesIn = 0
  let deliveredSamples = 0
  const played = request.priority === "batch" ? undefined : new PlaybackClock(speechRateHz)
  const notes = yield* CurrentRequest
  const meters = model.current()?.view().meters
  const run = yield* beginRun<"speech">({
    principal: yield* Caller,
    model,
    request,
    reservation,
    atMost: speechAtMost(request.text, request.speed),
    used: () => (deliveredSamples === 0 ? undefined : audioUsage("speech", deliveredSamples, speechRateHz)),
    reader: {
      take: (chunk) => {
        const { samples } = chunk
        if (samples.length === 0) return
        if (samplesIn === 0) sounded()
        samplesIn += samples.length
        if (samplesIn > maxSamples) {
          const detail = "longer than one reply may be"
          Deferred.doneUnsafe(tooLong, Effect.fail(new SynthesisFailed({ model: entry.id, detail })))
          return
        }
        reader.take(chunk)
        Deferred.doneUnsafe(first, Effect.void)
      },
      ended: ({ computeMs, samples }) => {
        leave()
        if (computeMs === undefined) return
        admission.observe(now(), computeMs, samplesToMs(samples, speechRateHz))
      },
    },
    untilReplied: true,
  }).pipe(Effect.mapError(synthesisError(model, request)))
  const ended = Effect.mapError(run.end, synthesisError(model, request))
  const end = Effect.raceFirst(
    Effect.map(ended, () => samplesIn),
    Deferred.await(tooLong),
  )
  const silent = Effect.suspend(() =>
    samplesIn > 0 ? Effect.void : Effect.fail(new SynthesisFailed({ model: entry.id, detail: "no audio" })),
  )
  const synthesis: Synthesis = {
    flow: run.flow,
    read: (next) => {
      for (const chunk of early.splice(0)) next.take(chunk)
      reader = next
    },
    made: () => samplesIn,
    audible: Effect.raceFirst(Deferred.await(first), Effect.andThen(end, silent)),
    delivered: (samples) => {
      deliveredSamples += samples
      if (played === undefined || meters === undefined || samples === 0) return
      const atMs = nowMs()
      if (!played.begun) meters.firstAudioMs.record(atMs - notes.startedMs)
      const silentMs = played.delivered(samples, atMs)
      if (silentMs === 0) return
      meters.underruns++
      meters.underrunMs += silentMs
    },
    end,
  }
  return synthesis
})

// One speech synthesis on behalf of a caller, from its reservation to its last sample: admitted, started, read, charged
// for what was delivered. The speech handler decides what to say and wraps the samples; this knows no format.
import { Deferred, Effect } from "effect"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { SPEECH_RATE_HZ, samplesToMs, secondsToSamples } from "#domain/audio/Audio.ts"
import { PlaybackClock } from "#domain/audio/PlaybackClock.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { audioUsage, type Usage } from "#domain/models/Usage.ts"
import { SynthesisFailed } from "#domain/wire/Errors.ts"
import { longestSpeechMs } from "#domain/wire/Speech.ts"
import type {
  PcmChunk,
  SynthesizeEnd,
  SynthesizeRequest,
  SynthesizeStarted,
} from "#engines/protocol/Engine.ts"
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
const maxSamples = secondsToSamples(3_600, SPEECH_RATE_HZ)

export type SynthesisError = ModelRunError | SynthesisFailed

/** The most that a text can cost. */
export const speechAtMost = (text: string, speed: number): Usage =>
  audioUsage("speech", Math.ceil(longestSpeechMs(text) / speed), 1000)

/** Fields that a caller can put right. The others are answered 502 (protocol 8.6, protocol 8.9). */
const callersFields = (cloning: boolean): ReadonlyArray<string> =>
  cloning ? ["voice", "language", "speed"] : ["language", "speed"]

/** An engine that cannot make a voice or a sound of the text is an upstream failure, except for a bad clip. */
const synthesisError =
  (registry: ModelRegistry["Service"], entry: ModelEntry) =>
  (error: ModelRunError): SynthesisError => {
    const model = entry.id
    const cloning = entry.speech?.cloning ?? false
    if (error._tag === "EngineFailed")
      return new SynthesisFailed({ model, detail: `the engine ${error.reason}: ${error.detail}` })
    if (error._tag !== "InvalidRequest" || callersFields(cloning).includes(error.field)) return error
    const detail = `${error.field}: ${error.problem}`
    return error.field === "voice"
      ? new SynthesisFailed({ model, detail, voices: voicesOf(registry, entry) })
      : new SynthesisFailed({ model, detail })
  }

export interface SynthesisSpec {
  readonly entry: ModelEntry
  readonly request: SynthesizeRequest
  readonly reservation: Reservation
}

export interface Synthesis {
  readonly flow: ModelRun<SynthesizeStarted, SynthesizeEnd>["flow"]
  /** Sends chunks, the ones that came before included, to `reader` from now on. Called once. */
  readonly read: (reader: (samples: Int16Array) => void) => void
  /** Completes with the first audio; fails where there is none. Until then a reply can still be a refusal. */
  readonly audible: Effect.Effect<void, SynthesisError>
  /** Takes note of samples that have reached the client: what will be charged when the scope closes. */
  readonly delivered: (samples: number) => void
  /** Samples that the engine has made so far. */
  readonly made: () => number
  /** Ends when all chunks have been read; the number of samples. */
  readonly end: Effect.Effect<number, SynthesisError>
}

/** What admission has to know of a model, as it is now. */
const speechModelNow = (registry: ModelRegistry["Service"], entry: ModelEntry): SpeechModel => {
  const host = registry.find(entry.id)?.host
  const facts = host?.facts
  const { open = 0, waiting = 0 } = host?.gauges() ?? {}
  return {
    id: entry.id,
    waitingLine: entry.runtime.waitingLine,
    taken: open + waiting,
    facts: facts !== undefined && "voices" in facts ? facts : undefined,
  }
}

/** Starts a synthesis; the engine has understood its request. */
export const beginSynthesis = Effect.fnUntraced(function* ({ entry, request, reservation }: SynthesisSpec) {
  const admission = yield* SpeechAdmission
  const registry = yield* ModelRegistry
  const now = () => speechModelNow(registry, entry)
  const { leave, sounded } =
    request.priority === "batch"
      ? yield* admission.batch(now())
      : yield* admission.stream(now(), request.speed)
  const early: Array<Int16Array> = []
  const first = Deferred.makeUnsafe<void>()
  const tooLong = Deferred.makeUnsafe<never, SynthesisFailed>()
  let reader = (samples: Int16Array): void => void early.push(samples)
  let samplesIn = 0
  let deliveredSamples = 0
  const played = request.priority === "batch" ? undefined : new PlaybackClock(SPEECH_RATE_HZ)
  const notes = yield* CurrentRequest
  const meters = registry.find(entry.id)?.meters
  const run = yield* beginRun<SynthesizeStarted, PcmChunk, SynthesizeEnd>({
    principal: yield* Caller,
    entry,
    request,
    reservation,
    atMost: speechAtMost(request.text, request.speed),
    used: () => (deliveredSamples === 0 ? undefined : audioUsage("speech", deliveredSamples, SPEECH_RATE_HZ)),
    reader: {
      onStarted: () => {},
      onUnit: ({ samples }) => {
        if (samples.length === 0) return
        if (samplesIn === 0) sounded()
        samplesIn += samples.length
        if (samplesIn > maxSamples) {
          const detail = "longer than one reply may be"
          Deferred.doneUnsafe(tooLong, Effect.fail(new SynthesisFailed({ model: entry.id, detail })))
          return
        }
        reader(samples)
        Deferred.doneUnsafe(first, Effect.void)
      },
      onEnd: ({ computeMs, samples }) => {
        leave()
        if (computeMs === undefined) return
        admission.observe(now(), computeMs, samplesToMs(samples, SPEECH_RATE_HZ))
      },
    },
    untilReplied: true,
  }).pipe(Effect.mapError(synthesisError(registry, entry)))
  const ended = Effect.mapError(run.end, synthesisError(registry, entry))
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
      for (const samples of early.splice(0)) next(samples)
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

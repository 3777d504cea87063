// The ears of one realtime socket: audio of the client becomes turns, by hand or by silence, and each turn an item that a lease of a
// live model transcribes. Knows no events of clients, no accounts and no transport.
import { Effect } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { LiveSessions } from "#actors/live/LiveSessions.ts"
import type { SessionLease } from "#actors/live/SessionLease.ts"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { fromG711, type G711 } from "#audio/G711.ts"
import { Resampler } from "#audio/Resampler.ts"
import { speechWeights } from "#audio/SpeechWeights.ts"
import type { PlayedAudio } from "#domain/activity/PlayedAudio.ts"
import {
  bytesPerSample,
  bytesToS16,
  listenRateHz,
  samplesToMs,
  samplesToSeconds,
} from "#domain/audio/Audio.ts"
import { NewestSamples } from "#domain/audio/NewestSamples.ts"
import { TurnDetector, type TurnRules } from "#domain/audio/TurnDetector.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { InvalidRequest, type RateLimited } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import type { AudioText } from "#domain/wire/RealtimeProtocol.ts"
import { turnEndSamples } from "#engines/protocol/Detection.ts"
import { betweenParts, inSlices } from "#http/InSlices.ts"
import type { SessionDetection } from "#services/detection/DetectionModels.ts"
import type { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { EchoDoubt } from "./EchoDoubt.ts"
import { resamplingWork, type SocketPace, sliceSeconds } from "./IntakePace.ts"
import { ModelHearing } from "./ModelHearing.ts"
import type { RealtimeItems, Tell } from "./RealtimeItems.ts"

/** Most items without a transcript. A guess: more of them arrive only from a client that sends faster than speech. */
const maxWaiting = 16

/** Characters of a long event that are checked at a time: 0.1 ms. */
const checkedChars = 64 * 1024

const base64 = /^[A-Za-z0-9+/]*$/
const base64End = /^[A-Za-z0-9+/]*={0,2}$/

/** How audio comes in. */
type AudioForm = "pcm" | G711

/** A part of an event's audio. */
const partOf = (audio: AudioText, from: number, to: number): string =>
  typeof audio === "string"
    ? audio.slice(from, to)
    : Buffer.from(audio.buffer, audio.byteOffset, audio.byteLength).toString("latin1", from, to)

/** Whether an event's audio is whole samples in base64; a long one is checked in slices. */
const checkAudio = Effect.fnUntraced(function* (audio: AudioText, form: AudioForm) {
  const { length } = audio
  const last = Math.max(0, length - checkedChars)
  let at = 0
  const check = (isOver: () => boolean): boolean | undefined => {
    for (; at < last; at += checkedChars) {
      if (!base64.test(partOf(audio, at, Math.min(last, at + checkedChars)))) return false
      if (isOver()) return undefined
    }
    return base64End.test(partOf(audio, last, length))
  }
  const isBase64 = length % 4 === 0 && (last === 0 ? check(() => false) : yield* inSlices(check))
  const end = partOf(audio, Math.max(0, length - 2), length)
  const sizeBytes = (length / 4) * 3 - (end === "==" ? 2 : end.endsWith("=") ? 1 : 0)
  if (isBase64 && (form !== "pcm" || sizeBytes % 2 === 0)) return
  const what = form === "pcm" ? "16-bit PCM" : "G.711"
  return yield* new InvalidRequest({ field: "audio", problem: `must be ${what} in base64` })
})

/** Samples of a part of an event's audio that begins and ends with whole samples. */
const samplesOf = (audio: string, form: AudioForm): Int16Array => {
  const bytes = Buffer.from(audio, "base64")
  return form === "pcm" ? bytesToS16(bytes) : fromG711(bytes, form)
}

/** Rate of the realtime protocol's PCM. */
const pcmRateHz = 24_000

export type LiveServices = LiveSessions | ModelRegistry | UsageLedger

export interface Seat {
  readonly entry: ModelEntry
  readonly place: SessionLease
  readonly leave: Effect.Effect<void>
}

export interface HearingTerms {
  readonly tell: Tell
  readonly items: RealtimeItems
  readonly seat: Seat
  /** When audio is taken in. */
  readonly pace: SocketPace
  /** The catalog's detection models, as far as there are any. */
  readonly detection: SessionDetection
  /** What the client plays meanwhile: its echo is no speech. Absent: nothing. */
  readonly played?: PlayedAudio
  /** Opens a lease with the socket's present settings; the replaced one is released afterwards. */
  readonly reseat: (replaced: SessionLease) => Effect.Effect<Seat, EdgeError, LiveServices>
  /** Counts an item as a request of the caller. */
  readonly admit: Effect.Effect<void, RateLimited>
  /** Runs when speech has begun; it tells its event first, which is `told`. Absent: the event is told, and no more. */
  readonly onSpeech?: (told: Effect.Effect<void, SocketError>) => Effect.Effect<void, SocketError>
  /** Where a model hears the ends of turns: runs once in each silence of a turn whose silence is judged. */
  readonly onSilence?: (silence: TurnSilence) => void
  /** Runs when a silence has ended a turn, after the events of its item. */
  readonly onTurn?: (itemId: string, silenceMs: number) => void
}

/** A silence within a turn, for a model that hears the ends of turns. */
export interface TurnSilence {
  /** The turn so far, or the end of it that the model hears. */
  readonly samples: Int16Array
  /** The silence ends the turn when it is this long, milliseconds. Of no effect once speech has gone on. */
  readonly setLength: (silenceMs: number) => void
}

/** Length of a silence with which such a model is asked, milliseconds: the silence behind speech that it was trained with. */
const askedAtMs = 200

/** How silence divides the audio; null: the client does. */
export type TurnTerms = TurnRules | null

export class Hearing {
  readonly #terms: HearingTerms
  #seat: Seat
  #turnTerms: TurnTerms
  #turns: TurnDetector | undefined
  #rateHz = pcmRateHz
  #heardSamples = 0
  readonly #echo: EchoDoubt | undefined
  /** Where the model of speech listens. */
  #model: ModelHearing | undefined
  /** The newest audio of the open turn, where a model hears the ends of turns. */
  #turnAudio: NewestSamples | undefined
  /** Number of the present silence, or of the last one; a new one when speech goes on. */
  #silence = 0
  /** The silence that `onSilence` was called with. */
  #silenceAsked = -1
  /** The silence with which the open turn ended before the newest audio, milliseconds. */
  #quietMs = 0
  #resampler = new Resampler(pcmRateHz, listenRateHz)

  constructor(terms: HearingTerms, turns: TurnTerms) {
    this.#terms = terms
    this.#seat = terms.seat
    this.#turnTerms = turns
    this.#echo = terms.played === undefined ? undefined : new EchoDoubt(terms.played)
    this.#findTurns()
  }

  #findTurns(): void {
    const turnTerms = this.#turnTerms
    const { speech, turnEnds } = this.#terms.detection
    this.#echo?.begins(this.heardMs)
    this.#model = undefined
    this.#turnAudio = undefined
    this.#turns = undefined
    this.#silence++
    if (turnTerms === null) return
    if (speech?.isReady() === true) this.#model = new ModelHearing(speech)
    const hearsEnds = turnTerms.judges === true && turnEnds?.isReady() === true
    if (hearsEnds) this.#turnAudio = new NewestSamples(turnEndSamples)
    this.#turns = new TurnDetector(
      speechWeights,
      hearsEnds ? { ...turnTerms, judges: false } : turnTerms,
      this.#heardSamples,
      this.#echo,
      this.#model?.scores,
    )
    this.#model?.begins(this.#turns.aheadSamples)
  }

  /** Between two turns: a model that has loaded, or answers again, takes over; and the built-in detector from one that does not answer. */
  #chooseDetectors(): void {
    const { speech, turnEnds } = this.#terms.detection
    if (this.#turns === undefined || this.#turns.isOpen) return
    const hears = this.#model?.isOver === false
    const judges = this.#turnTerms?.judges === true
    const changes =
      (speech !== undefined && !hears && speech.isReady()) ||
      (judges && turnEnds !== undefined && turnEnds.isReady() !== (this.#turnAudio !== undefined))
    if (changes) this.#findTurns()
  }

  /** Whether a model hears the ends of the present turns, so that nothing else judges their silences. */
  get hearsEnds(): boolean {
    return this.#turnAudio !== undefined
  }

  /** From now on turns are found like this. */
  setTurns(turns: TurnTerms): void {
    const same = (["silenceMs", "prefixMs", "threshold", "judges"] as const).every(
      (rule) => turns?.[rule] === this.#turnTerms?.[rule],
    )
    if (same) return
    this.#turnTerms = turns
    this.#findTurns()
  }

  /** The present silence ends the open turn when it is as long as this says of the end of its speech (Prosody). */
  judge(silenceOf: (ending: Float32Array) => number): void {
    const ending = this.#turns?.ending
    if (ending !== undefined) this.#turns?.setSilence(silenceOf(ending))
  }

  /** Milliseconds until the present silence ends the open turn, if it lasts; undefined where there is none. */
  get leftMs(): number | undefined {
    const pause = this.#turns?.pause
    return pause === undefined || pause.quietMs === 0 ? undefined : pause.endsAtMs - pause.quietMs
  }

  /** All audio so far, milliseconds. */
  get heardMs(): number {
    return samplesToMs(this.#heardSamples, listenRateHz)
  }

  /** Audio comes at this rate from now on. */
  setRate(rateHz: number): void {
    if (rateHz === this.#rateHz) return
    this.#rateHz = rateHz
    this.#resampler = new Resampler(rateHz, listenRateHz)
  }

  /** The open item's audio is complete. False where there is none. */
  get commit(): Effect.Effect<boolean, SocketError> {
    return this.#terms.items.commit
  }

  readonly clear: Effect.Effect<void> = Effect.suspend(() => {
    this.#resampler = new Resampler(this.#rateHz, listenRateHz)
    this.#findTurns()
    return this.#terms.items.clear
  })

  /** Takes a lease of another model or with other settings for the items to come; items that have begun end on the old one. */
  readonly move: Effect.Effect<void, EdgeError, LiveServices> = Effect.gen(
    { self: this },
    function* (this: Hearing) {
      const { items, reseat } = this.#terms
      const seat = yield* reseat(this.#seat.place)
      // Not awaited: an item that is still open ends with an event that comes after this one.
      yield* items.afterwards(this.#seat.leave)
      this.#seat = seat
    },
  )

  readonly #begin = Effect.gen({ self: this }, function* (this: Hearing) {
    const { admit, items } = this.#terms
    if (items.waiting >= maxWaiting) {
      return yield* new InvalidRequest({ field: "audio", problem: "comes faster than it is transcribed" })
    }
    yield* admit
    // A reload of the catalog has replaced the model since the last item.
    if (!this.#seat.place.isCurrent()) yield* this.move
    return yield* items.begin(this.#seat.place, this.#seat.entry)
  })

  /** Of the gateway's thread, for a second of audio (SocketPace). */
  get #work(): number {
    return this.#turns === undefined || this.#model?.isOver === false ? resamplingWork : 1
  }

  /** Takes an event's audio, in slices, each when the pace allows it. How much it is, milliseconds. */
  readonly hear = Effect.fnUntraced(
    { self: this },
    function* (this: Hearing, audio: AudioText, form: AudioForm) {
      yield* checkAudio(audio, form)
      const bytesPerSecond = form === "pcm" ? this.#rateHz * bytesPerSample : this.#rateHz
      // Eight characters are six bytes: whole samples.
      const sliceChars = Math.floor((bytesPerSecond * sliceSeconds) / 6) * 8
      let count = 0
      for (let at = 0; at < audio.length; at += sliceChars) {
        const samples = samplesOf(partOf(audio, at, Math.min(audio.length, at + sliceChars)), form)
        const seconds = samplesToSeconds(samples.length, this.#rateHz)
        const took = yield* this.#terms.pace.take(seconds, this.#work)
        yield* this.#hearSome(samples, took)
        count += samples.length
      }
      return samplesToMs(count, this.#rateHz)
    },
  )

  /** Takes samples at the present rate, in slices, each when the pace allows it. How much it is, milliseconds. */
  readonly hearSamples = Effect.fnUntraced({ self: this }, function* (this: Hearing, samples: Int16Array) {
    const sliceSamples = Math.floor(this.#rateHz * sliceSeconds)
    for (let at = 0; at < samples.length; at += sliceSamples) {
      const slice = samples.subarray(at, at + sliceSamples)
      const seconds = samplesToSeconds(slice.length, this.#rateHz)
      const took = yield* this.#terms.pace.take(seconds, this.#work)
      yield* this.#hearSome(slice, took)
    }
    return samplesToMs(samples.length, this.#rateHz)
  })

  readonly #hearSome = Effect.fnUntraced(
    { self: this },
    function* (this: Hearing, samples: Int16Array, took: (tookMs: number) => void) {
      const { items, onSpeech, onTurn, tell } = this.#terms
      yield* betweenParts
      const nowMs = yield* monotonicMs
      this.#chooseDetectors()
      let beganMs = performance.now()
      const resampled = this.#resampler.push(samples)
      this.#heardSamples += resampled.length
      this.#echo?.arrived(this.heardMs, nowMs)
      let tookMs = performance.now() - beganMs
      if (this.#model?.isOver === false) yield* this.#model.hear(resampled)
      beganMs = performance.now()
      const steps = this.#turns?.push(resampled) ?? []
      tookMs += performance.now() - beganMs
      took(tookMs)
      if (this.#turns === undefined) {
        if (resampled.length === 0) return
        if (!items.isOpen) yield* this.#begin
        if (!items.push(resampled, nowMs)) return yield* items.noMemory
        return
      }
      let isLeftOut = false
      for (const turn of steps) {
        if (turn.step === "ended") {
          const { openId } = items
          yield* tell("input_audio_buffer.speech_stopped", {
            audio_end_ms: Math.round(turn.audioMs - items.leaveOutUnheard()),
            item_id: openId ?? null,
          })
          yield* items.commit
          if (openId !== undefined) onTurn?.(openId, turn.quietMs)
          continue
        }
        // An item that reached its limit is complete; further speech begins another.
        const item_id = (items.isOpen ? items.openId : undefined) ?? (yield* this.#begin)
        // Its item may be open already: the client ended the turns itself until its settings changed.
        if (turn.step === "started") {
          const told = tell("input_audio_buffer.speech_started", {
            audio_start_ms: Math.round(turn.audioMs),
            item_id,
          })
          yield* onSpeech === undefined ? told : onSpeech(told)
        }
        if (!items.push(turn.samples, nowMs)) isLeftOut = true
        if (turn.step === "started") this.#turnAudio?.clear()
        this.#turnAudio?.push(turn.samples)
      }
      const { pause } = this.#turns
      const quietMs = pause?.quietMs ?? 0
      if (quietMs < this.#quietMs) {
        items.resumed()
        this.#silence++
      }
      this.#quietMs = quietMs
      if (pause !== undefined && quietMs > 0) items.paused(pause)
      if (quietMs >= askedAtMs) this.#askEnd()
      if (isLeftOut) return yield* items.noMemory
    },
  )

  /** Asks the model that hears the ends of turns about the present silence, once. */
  #askEnd(): void {
    const silence = this.#silence
    if (this.#turnAudio === undefined || this.#silenceAsked === silence) return
    this.#silenceAsked = silence
    this.#terms.onSilence?.({
      samples: this.#turnAudio.newest(turnEndSamples),
      setLength: (silenceMs) => {
        if (silence === this.#silence) this.#turns?.setSilence(silenceMs)
      },
    })
  }
}

// The load that the live sessions of a model put on its engine, by measurement: admits sessions and sets their pace.
// Pure but for its own counters; time comes in as numbers. There is one for each model. The formulas are in LivePace.
//
// A model that transcribes in chunks takes its time for each second of audio, however seldom there is a caption: fewer captions save nothing.
//
// By the utilization law the work of a caption is the engine's busy time divided by the captions it finished,
// independent of queueing. Other work on the same engine makes captions take longer, and so counts as less capacity.
import {
  fullShare,
  type LiveCost,
  paceOf,
  seldomShareOf,
  shareOfAll,
  speakersThatFit,
} from "#domain/audio/LivePace.ts"
import { mayTake } from "#domain/queues/FairShare.ts"
import { LearnedCost } from "#domain/queues/LearnedCost.ts"
import type { CaptionFacts, Chunks } from "#engines/protocol/Engine.ts"
import type { LiveCall } from "./IncrementalTranscriber.ts"

/** Work of one caption before any was measured, milliseconds: the demonstration model takes 20 to 50 of a busy core. */
const assumedCaptionMs = 20

/** The newest sixteenth weighs as much as all before it: a change of load is visible after some ten captions. */
const smoothing = 1 / 16
/** Closings are fewer: one in half a minute of speech. */
const closingSmoothing = 1 / 4
/** A share is learned from so much audio at least, milliseconds: a final result may cover a moment and take a chunk. */
const leastHeardMs = 250

/** A session that sent audio (or began) this recently counts as speaking. Longer than a pause between packets. */
export const speakingMs = 2_000

/** The fields of a session that are read here. */
export interface Speaker {
  /** Id of the organization. */
  readonly org: string
  readonly beganAtMs: number
  /** Seconds of audio between two captions, as its client requested. */
  readonly windowSeconds: number
  /** When it last sent audio, or when it began. */
  readonly lastAudioAtMs: number
}

/** What the engine measured while it loaded, where captions are requests of their own. */
interface LoadSeed extends Omit<CaptionFacts, "seconds"> {
  /** Audio of a closed piece, seconds. */
  readonly closedSeconds: number
}

const smoothed = (mean: number | undefined, value: number, weight: number): number =>
  mean === undefined ? value : mean + (value - mean) * weight

export class EngineLoad {
  readonly #seed: LoadSeed | undefined
  readonly #speakers = new Set<Speaker>()
  readonly #running: Record<LiveCall, number> = { closing: 0, caption: 0, final: 0 }
  #chargedAtMs = 0
  /** Busy time that is not yet assigned to a finished caption or piece; calls at the same time share it. */
  readonly #unchargedMs: Record<LiveCall, number> = { closing: 0, caption: 0, final: 0 }
  readonly #captionMs: LearnedCost
  readonly #closingMs: LearnedCost
  /** Of a model that transcribes in chunks: the share of the engine that one speaker takes. */
  readonly #chunkShare: LearnedCost | undefined
  /** Of it: busy time and audio since it was learned last. */
  #unlearnedMs = 0
  #heardMs = 0

  /**
   * `seed`: the work of a caption without the closing of pieces, whose work is counted separately. `chunks`: of a model that transcribes in
   * chunks.
   */
  constructor(seed?: LoadSeed, chunks?: Chunks) {
    this.#seed = seed
    const share = chunks === undefined ? undefined : chunks.costMs / 1_000 / chunks.seconds
    this.#chunkShare = share === undefined ? undefined : new LearnedCost(share, share)
    this.#captionMs = new LearnedCost(seed?.captionMs ?? assumedCaptionMs, seed?.captionMs)
    this.#closingMs = new LearnedCost(seed?.windowMs ?? 0, seed?.windowMs)
  }

  /** Work of one caption, milliseconds. */
  windowMs(nowMs: number): number {
    return this.#captionMs.at(nowMs) ?? assumedCaptionMs
  }

  /** Share of the engine that a speaker takes. `captions`: the load of the engine that makes the captions, if that is another one. */
  cost(nowMs: number, captions: EngineLoad = this): LiveCost {
    const seed = this.#seed
    const closingMs = this.#closingMs.at(nowMs) ?? 0
    const fixedShare = seed === undefined ? 0 : closingMs / 1000 / seed.closedSeconds
    const chunkShare = captions.#chunkShare?.at(nowMs)
    if (chunkShare !== undefined) return { captionMs: 0, fixedShare: fixedShare + chunkShare }
    return { captionMs: captions.windowMs(nowMs), fixedShare }
  }

  get sessions(): number {
    return this.#speakers.size
  }

  sessionsOf(org: string): number {
    let count = 0
    for (const speaker of this.#speakers) if (speaker.org === org) count++
    return count
  }

  /** A call of the engine begins. */
  began(nowMs: number, call: LiveCall): void {
    this.#charge(nowMs)
    this.#running[call]++
  }

  /** A call of the engine ended, for whatever reason. */
  ended(nowMs: number, call: LiveCall): void {
    this.#charge(nowMs)
    this.#running[call]--
  }

  /**
   * A session has a new caption, after this many calls. Two belong to a caption: a piece or part that is full, and the newest rest.
   * More are a backlog and do not show what a caption costs: their work is left out. `heardMs`: audio that it covers and none before did.
   */
  windowDone(nowMs: number, calls: number, heardMs: number): void {
    this.#charge(nowMs)
    const { caption, closing, final } = this.#unchargedMs
    this.#learnShare(nowMs, caption + closing + final, heardMs)
    this.#unchargedMs.caption = 0
    if (this.#seed === undefined) this.#unchargedMs.closing = this.#unchargedMs.final = 0
    if (calls > 2) return
    const costMs = this.#seed === undefined ? caption + closing + final : caption
    this.#captionMs.learn(smoothed(this.#captionMs.at(nowMs), costMs, smoothing), nowMs)
  }

  #learnShare(nowMs: number, busyMs: number, heardMs: number): void {
    const share = this.#chunkShare
    if (share === undefined) return
    this.#unlearnedMs += busyMs
    this.#heardMs += heardMs
    if (this.#heardMs < leastHeardMs) return
    share.learn(smoothed(share.at(nowMs), this.#unlearnedMs / this.#heardMs, smoothing), nowMs)
    this.#unlearnedMs = 0
    this.#heardMs = 0
  }

  /** A piece has been closed. */
  closingDone(nowMs: number): void {
    if (this.#seed === undefined) return
    this.#charge(nowMs)
    const closingMs = smoothed(this.#closingMs.at(nowMs), this.#unchargedMs.closing, closingSmoothing)
    this.#closingMs.learn(closingMs, nowMs)
    this.#unchargedMs.closing = 0
  }

  #charge(nowMs: number): void {
    const { caption, closing, final } = this.#running
    const all = caption + closing + final
    if (all > 0) {
      const each = (nowMs - this.#chargedAtMs) / all
      this.#unchargedMs.caption += each * caption
      this.#unchargedMs.closing += each * closing
      this.#unchargedMs.final += each * final
    }
    this.#chargedAtMs = nowMs
  }

  #speaking(nowMs: number): ReadonlyArray<Speaker> {
    return [...this.#speakers].filter(({ lastAudioAtMs }) => nowMs - lastAudioAtMs < speakingMs)
  }

  #windowsOf(nowMs: number): ReadonlyArray<number> {
    return this.#speaking(nowMs).map(({ windowSeconds }) => windowSeconds)
  }

  /** Share of the engine that the present speakers take; 1 is all of it. */
  share(nowMs: number, captions?: EngineLoad): number {
    const windows = this.#windowsOf(nowMs)
    const cost = this.cost(nowMs, captions)
    // Windows have few different lengths, and a pace takes time for each of the windows.
    const paces = new Map([...new Set(windows)].map((seconds) => [seconds, paceOf(seconds, windows, cost)]))
    return shareOfAll(
      windows.map((seconds) => paces.get(seconds) ?? seconds),
      cost,
    )
  }

  /** Seconds of audio until the session's next caption. */
  paceSeconds({ windowSeconds }: Speaker, nowMs: number, captions?: EngineLoad): number {
    return paceOf(windowSeconds, this.#windowsOf(nowMs), this.cost(nowMs, captions))
  }

  /** How many speakers with captions every second the engine can serve. */
  speakersThatFit(nowMs: number, captions?: EngineLoad): number {
    return speakersThatFit(1, this.cost(nowMs, captions))
  }

  /**
   * Admits a session, or refuses it. The first is always admitted: no other is disturbed. `replaced` is a session that leaves
   * as soon as this one has entered, and is not counted beside it. One organization may take `fullShare`; what is above it is for
   * those that have less than an equal share.
   */
  enter(
    speaker: Speaker,
    nowMs: number,
    { captions, replaced }: { readonly replaced?: Speaker | undefined; readonly captions?: EngineLoad } = {},
  ): boolean {
    // Sessions of the model that makes the captions work on it, too.
    const taken = captions === undefined ? 0 : captions.share(nowMs)
    const cost = this.cost(nowMs, captions)
    const amountOf = ({ windowSeconds }: Speaker) => seldomShareOf(windowSeconds, cost)
    const others = this.#speaking(nowMs).filter((other) => other !== replaced)
    const parts = others.map((other) => ({
      party: other.org,
      amount: amountOf(other),
      isUsed: other.lastAudioAtMs > other.beganAtMs,
    }))
    const asked = { party: speaker.org, amount: amountOf(speaker) }
    const most = { full: fullShare - taken, fair: 1 - taken, first: 1 - taken }
    if (others.length > 0 && !mayTake(parts, asked, most)) return false
    this.#speakers.add(speaker)
    return true
  }

  leave(speaker: Speaker): void {
    this.#speakers.delete(speaker)
  }
}

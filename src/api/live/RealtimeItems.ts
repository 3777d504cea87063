// The speech items of one realtime socket: each is a live session of its own, from its first sample to its transcript,
// charged separately. Writes the server's events about items.
import { Cause, Effect, Fiber, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { type LiveSession, longestSessionSeconds } from "#actors/live/LiveSession.ts"
import type { LiveError, SessionLease } from "#actors/live/SessionLease.ts"
import {
  bytesPerSample,
  listenRateHz,
  s16ToBytes,
  samplesToMs,
  samplesToSeconds,
} from "#domain/audio/Audio.ts"
import { type FinalResult, type LiveHypothesis, tokensOfText } from "#domain/audio/LiveTranscript.ts"
import type { PreviewTimes } from "#domain/audio/PreviewPlan.ts"
import { logprobsOf } from "#domain/audio/Transcript.ts"
import type { Pause } from "#domain/audio/TurnDetector.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { Holding } from "#domain/queues/MemoryBudget.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { InvalidRequest } from "#domain/wire/Errors.ts"
import { errorType } from "#domain/wire/Failures.ts"
import { itemObject, noMemory } from "#domain/wire/RealtimeProtocol.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { NewId } from "#http/Ids.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { chargedSamples, payFor } from "./LiveAdmission.ts"

export type Tell = (type: string, event?: object) => Effect.Effect<void, SocketError>

/** Audio of a turn: a longer one is completed, and the next begins. A guess: more than anyone says at a stretch. */
export const turnSeconds = 900

interface Item {
  readonly id: string
  readonly session: LiveSession<LiveError>
  /** The price of so much audio is reserved. */
  reservedSeconds: number
  /** Its audio is longer than that. */
  readonly isLonger: Signal
  fiber: Fiber.Fiber<void, SocketError> | undefined
  committed: boolean
  /** Memory of its audio that is still needed. */
  heldBytes: number
}

/** Text of an item that was sent to the client: only text that never changes is sent before the transcript. */
const stableText = ({ stableChars, text }: LiveHypothesis): string => [...text].slice(0, stableChars).join("")

const transcription = "conversation.item.input_audio_transcription"

/** Where the items of a socket stand, for sockets that have more than items of speech. */
interface ItemPlaces {
  /** An item is complete and gets its place; the id of the item before it. */
  readonly add: (id: string) => string | null
  /** Whether the client gets transcripts. */
  readonly tellsTranscripts: () => boolean
  /** Words of the open item that later audio cannot change. Absent where they are of no use. */
  readonly lasting?: (id: string, text: string) => void
  /** What the open item's transcript would be if the silence went on; undefined if speech goes on. Absent where no answers are prepared. */
  readonly foreseen?: (id: string, transcript: string | undefined) => void
  /** What transcripts made ahead, and the answers to them, took lately. Empty where they are needed as early as they can be. */
  readonly lately?: () => PreviewTimes
  /** An item's newest transcript made ahead took so long, milliseconds, also where it was given up. */
  readonly previewed?: (tookMs: number) => void
  /** Its transcript; undefined if there is none, because it failed. */
  readonly transcribed: (id: string, transcript: string | undefined) => void
}

/** The items of speech are all that there is. */
const onlySpeech = (): ItemPlaces => {
  let previous: string | null = null
  return {
    add: (id) => {
      const before = previous
      previous = id
      return before
    },
    tellsTranscripts: () => true,
    transcribed: () => {},
  }
}

interface RealtimeItemsTerms {
  readonly tell: Tell
  readonly caller: Principal
  readonly scope: Scope.Scope
  /** Counts the memory of the items' audio. */
  readonly held: Holding
  /** The client uses the protocol's first event names. */
  readonly older: boolean
}

export class RealtimeItems {
  readonly #tell: Tell
  readonly #places: ItemPlaces
  readonly #caller: Principal
  readonly #scope: Scope.Scope
  readonly #held: Holding
  /** The client uses the protocol's first event names. */
  readonly #older: boolean
  #current: Item | undefined
  readonly #unfinished = new Set<Item>()

  constructor({ caller, held, older, scope, tell }: RealtimeItemsTerms, places = onlySpeech()) {
    this.#held = held
    this.#older = older
    this.#places = places
    this.#tell = tell
    this.#caller = caller
    this.#scope = scope
  }

  get isOpen(): boolean {
    return this.#current !== undefined && !this.#current.session.hasEnded
  }

  get openId(): string | undefined {
    return this.#current?.id
  }

  /** Audio of the open item. */
  get openSeconds(): number {
    return this.#current?.session.seconds ?? 0
  }

  /** An item begins; the one before has been committed. */
  readonly begin = Effect.fnUntraced(
    { self: this },
    function* (this: RealtimeItems, place: SessionLease, entry: ModelEntry) {
      const newId = yield* NewId
      const item: Item = {
        id: `item_${newId()}`,
        session: place.begin(yield* monotonicMs, turnSeconds),
        reservedSeconds: longestSessionSeconds,
        isLonger: new Signal(),
        fiber: undefined,
        committed: false,
        heldBytes: 0,
      }
      this.#current = item
      this.#unfinished.add(item)
      item.fiber = yield* Effect.forkIn(this.#life(item, entry), this.#scope, { startImmediately: true })
      return item.id
    },
  )

  /** Audio for the open item. False if there is no memory for it: then it is left out. */
  push(samples: Int16Array, nowMs: number): boolean {
    const current = this.#current
    if (current === undefined || current.session.hasEnded) return true
    const { session } = current
    const grown = session.heldSamples * bytesPerSample + samples.byteLength - current.heldBytes
    if (grown > 0 && !this.#held.take(grown)) return false
    if (grown < 0) this.#held.giveBack(-grown)
    current.heldBytes += grown
    session.push(s16ToBytes(samples), nowMs)
    if (session.seconds > current.reservedSeconds) current.isLonger.set()
    return true
  }

  /** The refusal of audio for which there is no memory. */
  get noMemory(): InvalidRequest {
    return noMemory("audio", this.#held)
  }

  /** The open item's audio ends with this silence so far. */
  paused(pause: Pause): void {
    const current = this.#current
    const places = this.#places
    if (current === undefined || places.foreseen === undefined) return
    current.session.paused(pause, places.lately?.())
  }

  /** Speech goes on after a silence. */
  resumed(): void {
    const current = this.#current
    const places = this.#places
    if (current === undefined || places.foreseen === undefined) return
    current.session.resumed()
    places.foreseen(current.id, undefined)
  }

  /**
   * The open item's audio ends with its last silence, of which the end is left out that its transcript has not heard. Gives the
   * length that was left out, milliseconds.
   */
  leaveOutUnheard(): number {
    return samplesToMs(this.#current?.session.leaveOutUnheard() ?? 0, listenRateHz)
  }

  /** The open item's audio is complete. False where there is none. */
  readonly commit: Effect.Effect<boolean, SocketError> = Effect.gen(
    { self: this },
    function* (this: RealtimeItems) {
      const item = this.#current
      if (item === undefined) return false
      yield* this.#announce(item)
      item.session.stop("stop")
      return true
    },
  )

  /** Drops the open item; what was transcribed of it is charged. */
  readonly clear: Effect.Effect<void> = Effect.suspend(() => {
    const item = this.#current
    this.#current = undefined
    return item?.fiber === undefined ? Effect.void : Fiber.interrupt(item.fiber)
  })

  /** Items that have no transcript yet. */
  get waiting(): number {
    return this.#unfinished.size
  }

  /** Completes when every item has its transcript. */
  readonly finished: Effect.Effect<void, SocketError> = Effect.suspend(() =>
    Effect.forEach(
      [...this.#unfinished],
      ({ fiber }) => (fiber === undefined ? Effect.void : Fiber.join(fiber)),
      {
        discard: true,
      },
    ),
  )

  /** Runs this once the present items have their transcripts. */
  readonly afterwards = (run: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.asVoid(
      Effect.forkIn(Effect.andThen(Effect.ignore(this.finished), run), this.#scope, {
        startImmediately: true,
      }),
    )

  readonly #announce = (item: Item): Effect.Effect<void, SocketError> =>
    Effect.suspend(() => {
      if (item.committed) return Effect.void
      item.committed = true
      if (this.#current === item) this.#current = undefined
      const previous_item_id = this.#places.add(item.id)
      const about = { previous_item_id, item: itemObject(item.id, null) }
      const committed = this.#tell("input_audio_buffer.committed", { previous_item_id, item_id: item.id })
      const told = this.#older
        ? ["conversation.item.created"]
        : ["conversation.item.added", "conversation.item.done"]
      return Effect.andThen(
        committed,
        Effect.forEach(told, (type) => this.#tell(type, about), { discard: true }),
      )
    })

  #tellTranscript(type: string, event: object): Effect.Effect<void, SocketError> {
    return this.#places.tellsTranscripts() ? this.#tell(type, event) : Effect.void
  }

  #life(item: Item, entry: ModelEntry): Effect.Effect<void, SocketError, UsageLedger> {
    const { id, session } = item
    let failed = false
    let said = ""
    /** Tokens of what was said. */
    let saidTokens = 0
    const delta = (text: string, logprobs: LiveHypothesis["logprobs"]) => {
      const fresh = text.slice(said.length)
      said = text
      if (fresh === "") return Effect.void
      const event = { item_id: id, content_index: 0, delta: fresh }
      if (logprobs === undefined) return this.#tellTranscript(`${transcription}.delta`, event)
      const tokens = Math.max(saidTokens, tokensOfText(logprobs, text))
      const freshTokens = logprobsOf([{ logprobs: logprobs.slice(saidTokens, tokens) }])
      saidTokens = tokens
      return this.#tellTranscript(`${transcription}.delta`, { ...event, logprobs: freshTokens })
    }
    const captions = Effect.forever(
      Effect.flatMap(session.nextHypothesis, (hypothesis) => {
        const stable = stableText(hypothesis)
        if (stable.length > said.length) this.#places.lasting?.(id, stable)
        return delta(stable, hypothesis.logprobs)
      }),
    )
    const previews = Effect.forever(
      Effect.map(session.nextPreview, (preview) => {
        if (preview !== undefined) this.#places.foreseen?.(id, preview.text)
      }),
    )
    const completed = ({ hypothesis }: FinalResult) =>
      Effect.gen({ self: this }, function* (this: RealtimeItems) {
        // The session may have ended by itself: at its limit, or because the node stops.
        yield* this.#announce(item)
        const { logprobs } = hypothesis
        yield* delta(hypothesis.text, logprobs)
        this.#places.transcribed(id, hypothesis.text)
        yield* this.#tellTranscript(`${transcription}.completed`, {
          item_id: id,
          content_index: 0,
          transcript: hypothesis.text,
          ...(logprobs === undefined ? {} : { logprobs: logprobsOf([{ logprobs }]) }),
          usage: { type: "duration", seconds: samplesToSeconds(session.samples, listenRateHz) },
        })
      })
    const fail = (message: string, type: string) => {
      failed = true
      session.stop("stop")
      const error = { type, code: "transcription_failed", message, param: null }
      return Effect.gen({ self: this }, function* (this: RealtimeItems) {
        yield* this.#announce(item)
        this.#places.transcribed(id, undefined)
        yield* this.#tellTranscript(`${transcription}.failed`, { item_id: id, content_index: 0, error })
      })
    }
    return Effect.gen({ self: this }, function* (this: RealtimeItems) {
      const { more } = yield* payFor(
        this.#caller,
        entry,
        () => chargedSamples(session, failed),
        () => chargedSamples(session, true),
      )
      const paying = Effect.forever(
        Effect.gen(function* () {
          yield* item.isLonger.wait
          yield* more
          item.reservedSeconds += longestSessionSeconds
          item.isLonger.clear()
        }),
      )
      const telling = this.#places.foreseen === undefined ? captions : Effect.raceFirst(captions, previews)
      yield* completed(yield* Effect.raceAllFirst([session.run, telling, paying]))
    }).pipe(
      Effect.catchIf(
        (error): error is Exclude<typeof error, SocketError> => error._tag !== "SocketError",
        (error) => {
          const told = fail(detailOf(error), errorType(error))
          return Effect.andThen(reportFailure(error, "/v1/realtime"), told)
        },
      ),
      Effect.catchCauseIf(Cause.hasDies, (cause) =>
        Effect.andThen(reportFailure(cause, "/v1/realtime"), fail("Internal server error", "server_error")),
      ),
      Effect.scoped,
      Effect.ensuring(
        Effect.sync(() => {
          if (session.previewMs !== undefined) this.#places.previewed?.(session.previewMs)
          // One that is cleared before it has run has to end, too.
          session.stop("stop")
          this.#unfinished.delete(item)
          this.#held.giveBack(item.heldBytes)
        }),
      ),
    )
  }
}

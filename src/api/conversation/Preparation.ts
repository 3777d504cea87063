// Answers that are prepared while a silence of the user may still turn out to be a pause. The transcript of the audio so far is
// taken for the whole turn, and the answer to it is made and held. It is released when the turn ends if nothing that the model
// has read is different by then; otherwise it is dropped, unseen and not charged, and the answer is made anew.
import { Effect } from "effect"
import { Signal } from "#actors/live/Signal.ts"
import type { ConversationMeters } from "#domain/conversation/ConversationMeters.ts"
import type { History } from "#domain/conversation/History.ts"
import { type Item, spokenItem } from "#domain/conversation/Items.ts"
import type { ConversationSettings } from "#domain/conversation/Settings.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import type { Answer, AnswerServices } from "./Answer.ts"

/** A turn that may be complete. */
interface Foreseen {
  readonly itemId: string
  readonly transcript: string
}

interface Prepared extends Foreseen {
  readonly answer: Answer
  readonly settings: ConversationSettings
  /** The history's version once the turn has joined it with this transcript, if nothing else does. */
  readonly version: number
}

export interface PreparationTerms {
  readonly history: History
  readonly settings: () => ConversationSettings
  /** Counts the answers that were prepared, and those that were released. */
  readonly meters: Pick<ConversationMeters, "prepared" | "released">
  /** Whether an answer may be prepared now. */
  readonly isFree: () => boolean
  /** Starts an answer that is held, to these items. */
  readonly start: (items: ReadonlyArray<Item>) => Effect.Effect<Answer, EdgeError, AnswerServices>
}

/** A turn joins the history without its transcript, which follows. */
const changesOfTurn = 2

export class Preparation {
  private readonly terms: PreparationTerms
  private readonly news = new Signal()
  private foreseen: Foreseen | undefined
  private prepared: Prepared | undefined

  constructor(terms: PreparationTerms) {
    this.terms = terms
  }

  /** What the open turn says if it ends here; undefined: speech goes on. */
  foresee(itemId: string, transcript: string | undefined): void {
    this.foreseen = transcript === undefined ? undefined : { itemId, transcript }
    this.news.set()
  }

  /** Prepares an answer to each turn that may be complete, one at a time. Runs as long as the conversation. */
  readonly run: Effect.Effect<never, never, AnswerServices> = Effect.forever(
    Effect.gen({ self: this }, function* (this: Preparation) {
      yield* this.news.wait
      this.news.clear()
      const { foreseen } = this
      if (foreseen !== undefined && this.stands(foreseen, this.terms.history.version + changesOfTurn)) return
      yield* this.discard
      if (foreseen === undefined || foreseen.transcript.trim() === "" || !this.terms.isFree()) return
      yield* Effect.ignore(this.prepare(foreseen))
    }),
  )

  private prepare(foreseen: Foreseen): Effect.Effect<void, EdgeError, AnswerServices> {
    return Effect.gen({ self: this }, function* (this: Preparation) {
      const { history, settings, start } = this.terms
      const items = [...history.items, spokenItem(foreseen.itemId, foreseen.transcript)]
      const version = history.version + changesOfTurn
      const present = settings()
      const answer = yield* start(items)
      this.prepared = { ...foreseen, answer, settings: present, version }
      this.terms.meters.prepared++
    })
  }

  /** The answer to this turn, once it has joined the history, if one is prepared. The caller releases it. */
  take(itemId: string, transcript: string): Answer | undefined {
    const prepared = this.stands({ itemId, transcript }, this.terms.history.version)
    if (prepared === undefined || this.foreseen === undefined || !isSame(prepared, this.foreseen))
      return undefined
    this.prepared = undefined
    this.foreseen = undefined
    this.terms.meters.released++
    return prepared.answer
  }

  /** What is prepared, if it is the answer to this turn in a history of this version. */
  private stands(turn: Foreseen, version: number): Prepared | undefined {
    const prepared = this.prepared
    if (prepared === undefined || prepared.answer.isOver || !isSame(prepared, turn)) return undefined
    const isSo = prepared.version === version && prepared.settings === this.terms.settings()
    return isSo ? prepared : undefined
  }

  /** Drops what is prepared. */
  readonly discard: Effect.Effect<void> = Effect.suspend(() => {
    const prepared = this.prepared
    this.prepared = undefined
    return prepared === undefined ? Effect.void : prepared.answer.discard
  })
}

const isSame = (one: Foreseen, other: Foreseen): boolean =>
  one.itemId === other.itemId && one.transcript === other.transcript

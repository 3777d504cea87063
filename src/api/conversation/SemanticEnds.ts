// How long a silence of the user ends the turn of `semantic_vad`: judged by the words and the sound of their end at once, and again when
// the language model has said how probable it takes the end of the user's message. It is asked about each text once, as long as the
// silence lasts, and before an answer is prepared, which then begins with a prompt of which most is read. Not charged.
import { Effect, Option } from "effect"
import { completenessWeights, riseWeights } from "#audio/SpeechWeights.ts"
import { completeness, completenessWithRise } from "#domain/activity/Completeness.ts"
import { riseOf, unfinished } from "#domain/activity/MessageEnds.ts"
import { semanticSilenceMs } from "#domain/activity/SemanticSilence.ts"
import { type Item, spokenItem } from "#domain/conversation/Items.ts"
import type { ConversationSettings } from "#domain/conversation/Settings.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { MessageEnd, NoMessageEnd } from "#engines/protocol/Text.ts"
import { beginChat } from "#services/chat/Chat.ts"
import type { SessionTrace } from "../tracing/SessionTrace.ts"
import type { AnswerServices } from "./Answer.ts"
import type { ConversationTerms } from "./ConversationTerms.ts"
import { chatRequestOf } from "./Prompt.ts"

/** Texts of one turn that are asked about. A guess: more pauses than a turn of two minutes has. */
const mostTexts = 32

/** Left of the silence when the answer arrives, at least: an event of audio. */
const spareMs = 20
/** An answer of the model waits this long at most. A guess: half of the usual silence. */
const mostMs = 300

/** What the model says of a user's message; `failed`: the request was refused or has failed. */
type Said = MessageEnd | NoMessageEnd | "failed"

interface SemanticEndTerms<R> {
  readonly history: Pick<ConversationTerms["history"], "items">
  readonly meters: Pick<ConversationTerms["meters"], "messageEnd">
  readonly settings: () => Pick<ConversationSettings, "turns">
  /** Counts the judged ends of messages. */
  readonly trace: Pick<SessionTrace, "messageEnds"> | undefined
  /** Asks the model whether the last of these items has ended. */
  readonly ask: (items: ReadonlyArray<Item>, withinMs: number) => Effect.Effect<Said, never, R>
  /** The turn that is open. */
  readonly openId: () => string | undefined
  /** Language of the transcripts, if it is known. */
  readonly language: () => string | undefined
  /** Whether a model hears the ends of turns: it judges the silences instead (HeardEnds). */
  readonly isJudged: () => boolean
  /** Judges the present silence by the sound of its end (Hearing). */
  readonly judge: (silenceOf: (ending: Float32Array) => number) => void
  /** Milliseconds until the present silence ends the turn; undefined where there is none. */
  readonly leftMs: () => number | undefined
  /** The judgement of this transcript stands; undefined: speech goes on. */
  readonly judged: (id: string, transcript: string | undefined) => void
}

/** The engines take no question about a conversation with pictures. */
const hasPictures = (items: ReadonlyArray<Item>): boolean =>
  items.some((item) => item.type === "message" && item.content.some(({ type }) => type === "input_image"))

interface Question {
  readonly id: string
  readonly transcript: string
  readonly items: ReadonlyArray<Item>
  readonly withinMs: number
}

/** The conversation's model as the one that is asked. Not charged. */
export const askModel =
  ({ caller, models, settings }: Pick<ConversationTerms, "caller" | "models" | "settings">) =>
  (items: ReadonlyArray<Item>, withinMs: number): Effect.Effect<Said, never, AnswerServices> => {
    const { instructions, toolChoice, tools } = settings()
    const model = models.writes.entry.id
    const prompt = chatRequestOf({ model, instructions, items, tools, toolChoice, maxTokens: 1 })
    const begun = beginChat(caller, prompt, "whole", {
      terms: { chargedIf: () => false },
      messageEnd: { withinMs },
    })
    return Effect.scoped(Effect.flatMap(begun, ({ generation }) => generation.end)).pipe(
      Effect.map(({ messageEnd }) => messageEnd ?? ("failed" as const)),
      Effect.orElseSucceed(() => "failed" as const),
    )
  }

/** `R`: what `ask` needs. */
export class SemanticEnds<R = AnswerServices> {
  readonly #terms: SemanticEndTerms<R>
  readonly #news = new Signal()
  #question: Question | undefined
  /** The turn that `known` belongs to. */
  #id: string | undefined
  /** The rise of each text that the model was asked about; undefined: there is none. */
  readonly #known = new Map<string, number | undefined>()
  /** False once the engine has said that this model cannot tell. */
  #canTell = true

  constructor(terms: SemanticEndTerms<R>) {
    this.#terms = terms
  }

  /** What the open turn's transcript would be if the silence went on; undefined if speech goes on. */
  foresee(id: string, transcript: string | undefined): void {
    this.#question = undefined
    this.#news.set()
    const { openId, settings } = this.#view
    const { turns } = settings
    if (
      transcript === undefined ||
      turns?.kind !== "semantic_vad" ||
      this.#terms.isJudged() ||
      id !== openId
    ) {
      return this.#terms.judged(id, transcript)
    }
    if (id !== this.#id) {
      this.#id = id
      this.#known.clear()
    }
    const text = unfinished(transcript)
    this.#judge(transcript, settings, this.#known.get(text))
    const withinMs = Math.min(mostMs, (this.#terms.leftMs() ?? 0) - spareMs)
    const asks =
      turns.modelWeight > 0 &&
      this.#canTell &&
      text !== "" &&
      !this.#known.has(text) &&
      this.#known.size < mostTexts
    const { items } = this.#terms.history
    if (!asks || withinMs <= 0 || hasPictures(items)) return this.#terms.judged(id, transcript)
    this.#known.set(text, undefined)
    this.#question = { id, transcript, items: [...items, spokenItem(id, text)], withinMs }
    this.#news.set()
  }

  /** Asks the model, one question at a time. Runs as long as the conversation. */
  readonly run: Effect.Effect<never, never, R> = Effect.forever(
    Effect.gen({ self: this }, function* (this: SemanticEnds<R>) {
      yield* this.#news.wait
      this.#news.clear()
      const question = this.#question
      // Speech that goes on, or a newer transcript, ends the question.
      if (question !== undefined) yield* Effect.raceFirst(this.#answer(question), this.#news.wait)
    }),
  )

  get #view() {
    return { openId: this.#terms.openId(), settings: this.#terms.settings() }
  }

  #judge(text: string, { turns }: Pick<ConversationSettings, "turns">, rise: number | undefined): void {
    if (turns === null) return
    const language = this.#terms.language()
    const knowsWords = language === undefined || language.startsWith("en")
    this.#terms.judge((ending) =>
      semanticSilenceMs(
        turns.eagerness,
        rise === undefined
          ? completeness(completenessWeights, text, ending)
          : completenessWithRise(completenessWeights, riseWeights, {
              text,
              ending,
              rise,
              knowsWords,
              weight: turns.modelWeight,
            }),
      ),
    )
  }

  #answer(question: Question): Effect.Effect<void, never, R> {
    return Effect.gen({ self: this }, function* (this: SemanticEnds<R>) {
      const { id, items, transcript, withinMs } = question
      const beganMs = yield* monotonicMs
      const found = yield* Effect.timeoutOption(this.#terms.ask(items, withinMs), withinMs)
      const end = Option.getOrElse(found, () => "late" as const)
      this.#terms.meters.messageEnd(typeof end === "string" ? end : "judged", (yield* monotonicMs) - beganMs)
      if (end === "template") this.#canTell = false
      if (this.#question !== question) return
      this.#question = undefined
      const { openId, settings } = this.#view
      const { trace } = this.#terms
      if (typeof end !== "string") {
        const rise = riseOf(end.stops)
        this.#known.set(unfinished(transcript), rise)
        if (rise !== undefined && id === openId && settings.turns?.kind === "semantic_vad") {
          this.#judge(transcript, settings, rise)
          if (trace !== undefined) trace.messageEnds++
        }
      }
      // The turn may have ended meanwhile: then there is nothing to prepare.
      if (id === openId) this.#terms.judged(id, transcript)
    })
  }
}

// Makes one answer of a conversation from the session's settings, what `response.create` overrides of them, and the items that the
// model reads. Starts nothing.
import { Effect } from "effect"
import type { AnswerTimes } from "#domain/conversation/AnswerTimes.ts"
import type { ResponseCreate } from "#domain/conversation/ClientEvents.ts"
import type { Item } from "#domain/conversation/Items.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import { type ConversationSettings, type Truncation, voiceNameOf } from "#domain/conversation/Settings.ts"
import { Answer, type AnswerTerms, type Prompts } from "./Answer.ts"
import { presetOf } from "./ConversationModels.ts"
import type { ConversationTerms } from "./ConversationTerms.ts"
import { chatRequestOf } from "./Prompt.ts"
import { Voice } from "./Voice.ts"

/** Tokens of an answer of which the session says `inf`. */
const unboundedTokens = 4_096

/** How often a prompt that does not fit is made shorter. */
const mostCuts = 6

/** The newest items: a share of all. */
const newest = (items: ReadonlyArray<Item>, share: number): ReadonlyArray<Item> =>
  items.slice(-Math.max(1, Math.floor(items.length * share)))

/** Shares of the items that are tried in this order. */
const sharesOf = (truncation: Truncation): ReadonlyArray<number> => {
  if (truncation === "disabled") return [1]
  const ratio = truncation === "auto" ? 0.7 : Math.min(0.95, Math.max(0.1, truncation.retention_ratio))
  return Array.from({ length: mostCuts }, (_, cut) => ratio ** ((cut * (cut + 1)) / 2))
}

interface NewAnswerTerms {
  readonly conversation: ConversationTerms
  readonly clock: PlayClock
  readonly given: ResponseCreate
  /** What the model reads. */
  readonly items: ReadonlyArray<Item>
  readonly times: AnswerTimes
  readonly isHeld: boolean
  /** Called with the id of its message, where it is spoken and belongs to the conversation. */
  readonly onMessage: (id: string) => void
}

const voiceOf = (
  { conversation }: NewAnswerTerms,
  settings: Pick<ConversationSettings, "speed" | "voice">,
) => {
  const { caller, models } = conversation
  const { entry } = models.speaks
  return Effect.map(
    presetOf(models.speaks, settings.voice),
    (preset) =>
      new Voice({
        caller,
        model: models.speaks,
        preset,
        speed: settings.speed,
        language: entry.speech?.languages[0] ?? "en",
        maxCharacters: entry.speech?.maxCharacters ?? 4_096,
      }),
  )
}

/** Apart from `newAnswer`, so that what an answer keeps to its end does not keep the items as well. */
const promptsOf = (
  { conversation: { models }, given, items }: NewAnswerTerms,
  session: ConversationSettings,
  maxOutputTokens: ConversationSettings["maxOutputTokens"],
): Prompts =>
  sharesOf(session.truncation).map(
    (share) => () =>
      chatRequestOf({
        model: models.writes.entry.id,
        instructions: given.instructions ?? session.instructions,
        items: newest(items, share),
        tools: given.tools ?? session.tools,
        toolChoice: given.tool_choice ?? session.toolChoice,
        maxTokens: maxOutputTokens === "inf" ? unboundedTokens : maxOutputTokens,
      }),
  )

export const newAnswer = Effect.fnUntraced(function* (terms: NewAnswerTerms) {
  const { clock, conversation, given, isHeld, onMessage, times } = terms
  const { caller, conversationId, history, playout, report, newId, tell } = conversation
  const isBeside = given.conversation === "none"
  const session = conversation.settings()
  const asked = given.audio?.output?.voice
  const { sounds, speed } = session
  // A call is played in real time.
  const pacing = playout === undefined ? session.pacing : "realtime"
  // Without the session's instructions and tools, which an answer would keep to its end.
  const settings = {
    pacing,
    sounds,
    speed,
    modality: given.output_modalities?.[0] ?? session.modality,
    maxOutputTokens: given.max_output_tokens ?? session.maxOutputTokens,
    voice: asked ? voiceNameOf(asked) : session.voice,
  }
  const voice = settings.modality === "text" ? undefined : yield* voiceOf(terms, settings)
  const answerTerms: AnswerTerms = {
    tell,
    newId,
    caller,
    history: isBeside ? undefined : history,
    conversationId,
    clock,
    settings,
    metadata: given.metadata ?? null,
    voice,
    times,
    isHeld,
    meters: conversation.meters,
    trace: conversation.trace,
    report,
    playout,
    tellsLatency: session.tellsLatency,
    onMessage,
  }
  return new Answer(answerTerms, promptsOf(terms, session, settings.maxOutputTokens))
})

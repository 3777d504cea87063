// A catalog entry of kind `conversation`: which models a conversation joins, and how its sessions begin. It has no weights and no
// engine of its own. The schema, and what can be wrong with an entry beside others. Pure.
import { Schema } from "effect"
import { withDefault } from "../models/EntrySchemas.ts"
import { type ModelEntry, ModelId, type ModelKind } from "../models/ModelEntry.ts"
import { type AliasMistake, modelNamed, voiceAliases } from "../models/ModelNames.ts"
import { suggestion } from "../models/NearestName.ts"
import { SessionChange } from "./Settings.ts"

const { type: _, ...sessionFields } = SessionChange.fields

/** What `session.update` may set, without its `type`. */
const SessionDefaults = Schema.Struct(sessionFields)

export const ConversationEntry = Schema.Struct({
  id: ModelId,
  kind: Schema.Literal("conversation"),
  /** Other names of the conversation in requests. Lists show its id. */
  aliases: Schema.optionalKey(Schema.Array(ModelId)),
  ownedBy: Schema.NonEmptyString,
  /** Unix time, seconds. */
  created: Schema.Int,
  /** The ids of its models by their kinds, and the session that a client begins with. */
  conversation: Schema.Struct({
    transcription: ModelId,
    text: ModelId,
    speech: ModelId,
    /** A voice of the speech model or an alias of one; absent: its first. */
    voice: Schema.optionalKey(Schema.NonEmptyString),
    session: Schema.optionalKey(SessionDefaults),
  }),
  /** As those of a model; each of its models must be deployed there, too. */
  regions: withDefault(Schema.Array(Schema.String), ["*"]),
})
export type ConversationEntry = typeof ConversationEntry.Type

/** The kinds of the models that a conversation joins; each is the key of its id in the entry. */
export const partKinds = ["transcription", "text", "speech"] as const satisfies ReadonlyArray<ModelKind>
type PartKind = (typeof partKinds)[number]

const partProblem = (
  models: ReadonlyArray<ModelEntry>,
  { conversation, regions }: ConversationEntry,
  kind: PartKind,
): string | undefined => {
  const id = conversation[kind]
  const named = models.find((model) => model.id === id)
  if (named === undefined) {
    const other = models.find(({ aliases }) => aliases?.includes(id))
    if (other !== undefined) return `${id} is an alias; name the id, ${other.id}`
    const known = models.filter((model) => model.kind === kind).map((model) => model.id)
    return `"${id}" is not a model of this catalog${suggestion(id, known)}`
  }
  if (named.kind !== kind) return `${id} is a ${named.kind} model; a ${kind} model is needed here`
  const absent = named.regions.includes("*") ? [] : regions.filter((code) => !named.regions.includes(code))
  return absent.length === 0
    ? undefined
    : `${id} is not deployed in all regions of the conversation (${absent.join(", ")})`
}

const voiceMistakes = (
  models: ReadonlyArray<ModelEntry>,
  { conversation: { session, speech: id, voice } }: ConversationEntry,
): ReadonlyArray<AliasMistake> => {
  const inSession = session?.audio?.output?.voice
  if (inSession !== undefined && inSession !== null) {
    const path = ["conversation", "session", "audio", "output", "voice"]
    return [{ path, problem: "stands in conversation.voice" }]
  }
  const speech = models.find((model) => model.id === id)?.speech
  if (voice === undefined || speech === undefined) return []
  const { voices } = speech
  if (voices.includes(voice) || voiceAliases(speech, voices, true).has(voice)) return []
  return [
    { path: ["conversation", "voice"], problem: `${voice} is not one of the voices ${voices.join(", ")}` },
  ]
}

/** What is wrong with a conversation beside these models; paths begin at the entry. */
export const conversationMistakes = (
  entry: ConversationEntry,
  models: ReadonlyArray<ModelEntry>,
): ReadonlyArray<AliasMistake> => [
  ...partKinds.flatMap((kind) => {
    const problem = partProblem(models, entry, kind)
    return problem === undefined ? [] : [{ path: ["conversation", kind], problem }]
  }),
  ...voiceMistakes(models, entry),
]

/** The conversation with this id or alias. */
export const conversationNamed = (
  entries: ReadonlyArray<ConversationEntry>,
  name: string,
): ConversationEntry | undefined =>
  entries.find(({ id }) => id === name) ?? entries.find(({ aliases }) => aliases?.includes(name))

/**
 * The model that hears where a client of the conversation asks for this one: OpenAI's names mean the conversation's own.
 * @param hears its id
 */
export const earsOf = (
  models: ReadonlyArray<ModelEntry>,
  name: string | undefined,
  hears: string,
): string => {
  if (name === undefined) return hears
  const isOpenAis =
    modelNamed(models, name, false) === undefined && modelNamed(models, name, true)?.kind === "transcription"
  return isOpenAis ? hears : name
}

// Aliases of models and voices: those of a catalog entry, and OpenAI's, so that clients written for OpenAI work
// unchanged (protocol 6.4). Pure functions and tables. A real id or voice always wins over an alias.
import type { ModelEntry, ModelKind } from "./ModelEntry.ts"

/**
 * OpenAI's model names. Each means the first deployed model of its kind, in the catalog's order. The last three are the
 * defaults of the realtime transcription clients of pipecat and LiveKit.
 */
const openAiModels: ReadonlyMap<string, ModelKind> = new Map([
  ["gpt-4o-mini-tts", "speech"],
  ["tts-1", "speech"],
  ["tts-1-hd", "speech"],
  ["whisper-1", "transcription"],
  ["gpt-4o-transcribe", "transcription"],
  ["gpt-4o-mini-transcribe", "transcription"],
  ["gpt-transcribe", "transcription"],
  ["gpt-live-transcribe", "transcription"],
  ["gpt-realtime-whisper", "transcription"],
])

/** OpenAI's models that converse. Each means the first deployed text model, with the first that hears and the first that speaks. */
const openAiConversations: ReadonlySet<string> = new Set([
  "gpt-realtime",
  "gpt-realtime-mini",
  "gpt-realtime-2",
  "gpt-realtime-2.1",
])

/** True if OpenAI's model of this name converses. */
export const isConversationName = (name: string): boolean => openAiConversations.has(name)

/** OpenAI's models without turn detection: their clients mark the end of each utterance themselves. */
const withoutTurns: ReadonlySet<string> = new Set(["gpt-live-transcribe", "gpt-realtime-whisper"])

/** True if clients of this model expect the server to detect turns unless they say otherwise. */
export const expectsTurns = (name: string | undefined): boolean =>
  name === undefined || !withoutTurns.has(name)

/** OpenAI's voices, and the preset of `tts-82m` for each, with a female preset for a female voice. */
const openAiVoices: ReadonlyMap<string, string> = new Map([
  ["alloy", "af_sarah"],
  ["ash", "am_adam"],
  ["ballad", "bm_lewis"],
  ["cedar", "am_michael"],
  ["coral", "af_bella"],
  ["echo", "am_michael"],
  ["fable", "bm_george"],
  ["marin", "bf_emma"],
  ["nova", "af_bella"],
  ["onyx", "am_adam"],
  ["sage", "bf_isabella"],
  ["shimmer", "bf_emma"],
  ["verse", "bm_lewis"],
])

/** The deployed model with this name: by id, by an alias of its entry, or by OpenAI's name if `openAi` is true. */
export const modelNamed = (
  entries: ReadonlyArray<ModelEntry>,
  name: string,
  openAi: boolean,
): ModelEntry | undefined => {
  const named =
    entries.find(({ id }) => id === name) ?? entries.find(({ aliases }) => aliases?.includes(name))
  if (named !== undefined || !openAi) return named
  const kind = openAiModels.get(name)
  return entries.find((entry) => entry.kind === kind)
}

/**
 * A voice of the model for one of OpenAI's: the voice of the same given name (`af_alloy`), the preset of the table, one
 * of the same sex (second letter of a preset's id), or the model's first.
 */
const openAiVoice = (voices: ReadonlyArray<string>, name: string, preset: string): string | undefined => {
  const sex = preset[1]
  return (
    voices.find((voice) => /^[a-z][fm]_/.test(voice) && voice.slice(3) === name) ??
    voices.find((voice) => voice === preset) ??
    voices.find((voice) => /^[a-z][fm]_/.test(voice) && voice[1] === sex) ??
    voices[0]
  )
}

/** All aliases of a model's voices: alias → voice. */
export const voiceAliases = (
  { aliases = {} }: NonNullable<ModelEntry["speech"]>,
  voices: ReadonlyArray<string>,
  openAi: boolean,
): ReadonlyMap<string, string> => {
  const own = Object.entries(aliases).filter(([, voice]) => voices.includes(voice))
  const theirs = [...(openAi ? openAiVoices : [])].flatMap(([name, preset]) => {
    const voice = openAiVoice(voices, name, preset)
    return voice === undefined ? [] : [[name, voice] as const]
  })
  return new Map([...theirs, ...own].filter(([name]) => !voices.includes(name)))
}

/** A wrong alias: its position in the catalog file, and what is wrong with it. */
export interface AliasMistake {
  readonly path: ReadonlyArray<string | number>
  readonly problem: string
}

/** An entry with its names. */
type Named = Pick<ModelEntry, "aliases" | "id" | "speech">

/** All mistakes in the aliases of a catalog. */
export const aliasMistakes = (entries: ReadonlyArray<Named>): ReadonlyArray<AliasMistake> => {
  const takenBy = new Map(entries.map(({ id }) => [id, id]))
  const mistakes: Array<AliasMistake> = []
  for (const [index, { aliases = [], id, speech }] of entries.entries()) {
    for (const [at, alias] of aliases.entries()) {
      const other = takenBy.get(alias)
      if (other === undefined) takenBy.set(alias, id)
      else
        mistakes.push({ path: ["models", index, "aliases", at], problem: `${alias} already names ${other}` })
    }
    const voices = speech?.voices ?? []
    for (const [alias, voice] of Object.entries(speech?.aliases ?? {})) {
      const path = ["models", index, "speech", "aliases", alias]
      if (voices.includes(alias)) mistakes.push({ path, problem: "is a voice of this model" })
      else if (!voices.includes(voice)) {
        mistakes.push({ path, problem: `${voice} is not one of its voices ${voices.join(", ")}` })
      }
    }
  }
  return mistakes
}

// The models of a conversation as catalog entries of a node, and as files for the engines alone; the clips that are said.

import type { Clip } from "#harness/data/Clip.ts"
import { makeClip } from "#harness/data/Clip.ts"
import { kokoroFiles } from "../sizes/kokoro/Kokoro.ts"
import { textWeights } from "../sizes/text/TextWeights.ts"
import { whisperFiles } from "../sizes/whisper/Whisper.ts"
import { kokoroEntry, voice as presetVoice, demoFiles as speechFiles } from "../speech/Models.ts"
import { demoWeights, entry as textEntry } from "../text/Models.ts"
import {
  clipNames,
  clipSamples,
  entryOf,
  demoFiles as transcriptionFiles,
  demoOptions as transcriptionOptions,
} from "../transcription/Models.ts"

export const voice = presetVoice
export const instructions = "Answer in one short sentence."
export const textModel = "conversation-text"
export const transcriptionModel = "conversation-transcription"
const speechModel = "conversation-speech"

interface Weights {
  readonly files: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, unknown>>
}

/** What a process needs to run the engines alone. */
export interface EngineWeights {
  readonly transcription: Weights
  readonly text: Weights
  readonly speech: Weights
  readonly threads: number
}

/** Text, transcription and speech of real shape: 0.5 billion parameters, Whisper base, Kokoro. */
export const conversationSizes = ["real"] as const
export type ConversationSize = (typeof conversationSizes)[number]

const speechOptions = { slots: 8 }

/** @param size undefined for the demonstration weights, which take one thread each */
export const engineWeights = async (
  size: ConversationSize | undefined,
  threads: number,
): Promise<EngineWeights> => ({
  transcription:
    size === undefined
      ? { files: transcriptionFiles, options: transcriptionOptions }
      : { files: await whisperFiles("base"), options: {} },
  text: {
    files: { weights: size === undefined ? demoWeights : await textWeights("0.5b") },
    options: { contextTokens: 2_048, slots: 4 },
  },
  speech: {
    files: size === undefined ? speechFiles : await kokoroFiles("82m"),
    options: speechOptions,
  },
  threads,
})

export const catalogOf = ({ speech, text, threads, transcription }: EngineWeights) => [
  {
    ...entryOf({
      files: transcription.files as typeof transcriptionFiles,
      options: transcription.options,
      catalogThreads: threads,
    }),
    id: transcriptionModel,
  },
  textEntry(textModel, "llama-gguf", {
    files: { weights: { source: text.files.weights } },
    options: text.options,
    runtime: { load: "start", threads },
  }),
  { ...kokoroEntry(speech.files, threads), id: speechModel },
]

/** Evaluation clips of 2 to 4 seconds. */
export const spokenClips = (count: number): ReadonlyArray<Clip> =>
  clipNames()
    .map((name) => ({ name, samples: clipSamples(name) }))
    .filter(({ samples }) => samples.length > 2 * 16_000 && samples.length < 4 * 16_000)
    .slice(0, count)
    .map(({ name, samples }) =>
      makeClip(
        name,
        Int16Array.from(samples, (sample) => Math.round(sample * 32_768)),
        "",
      ),
    )

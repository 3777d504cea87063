// The three engines of a conversation without a node, in a process of their own: the floor of a turn. One after the other they
// transcribe its audio, write as much text as the node's first piece had, and speak that piece.
import { Effect, Scope } from "effect"
import { IncrementalTranscriber } from "#actors/live/IncrementalTranscriber.ts"
import { LiveAudio } from "#actors/live/LiveAudio.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { kokoroOnnx } from "#engines/kokoro/KokoroOnnx.ts"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { SpeechEngine, TextEngine, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import { type EngineWeights, instructions, voice } from "./Models.ts"

interface Engines {
  readonly listens: TranscriptionEngine
  readonly writes: TextEngine
  readonly speaks: SpeechEngine
}

let engines: Engines | undefined

const open = async ({ speech, text, threads, transcription }: EngineWeights): Promise<void> => {
  const spec = { modelId: "bare", threads }
  const acquired = Effect.all([
    whisperHfOnnx.acquire({ ...spec, adapter: whisperHfOnnx.adapter, ...transcription }),
    llamaGguf.acquire({ ...spec, adapter: llamaGguf.adapter, ...text }),
    kokoroOnnx.acquire({ ...spec, adapter: kokoroOnnx.adapter, ...speech }),
  ])
  const [listens, writes, speaks] = await Effect.runPromise(acquired.pipe(Scope.provide(Scope.makeUnsafe())))
  if (listens.kind !== "transcription" || writes.kind !== "text" || speaks.kind !== "speech")
    throw new Error("an engine of another kind")
  engines = { listens, writes, speaks }
}

const outlet = <U>(push: (unit: U) => void) => ({
  started: () => {},
  push,
  paused: () => false,
  resumed: Effect.void,
})

/** What the node did in the same turn. */
interface BareTurn {
  /** s16, 16 kHz */
  readonly samples: Int16Array
  readonly transcript: string
  /** The piece that it spoke first. */
  readonly piece: string
  readonly maxTokens: number
}

export interface BareTimes {
  readonly transcriptionMs: number
  /** Until there is as much text as in the piece. */
  readonly textMs: number
  /** Until the first samples of the piece. */
  readonly speechMs: number
}

const transcriptionMs = async ({ listens }: Engines, samples: Int16Array): Promise<number> => {
  const audio = new LiveAudio(samples.length)
  audio.append(s16ToBytes(samples))
  const options = { language: undefined, prompt: "", fromScratch: true }
  const transcriber = new IncrementalTranscriber(audio, listens.facts, options, (request, onSegment) =>
    Effect.orDie(listens.transcribe(request, outlet(onSegment))),
  )
  const beganMs = performance.now()
  await Effect.runPromise(transcriber.open(samples.length, true))
  return performance.now() - beganMs
}

const textMs = async ({ writes }: Engines, { maxTokens, piece, transcript }: BareTurn): Promise<number> => {
  const request = {
    prompt: {
      turns: [
        { role: "system", content: instructions },
        { role: "user", content: transcript },
      ],
    },
    maxTokens,
    // A reply that ended before the node's would be no floor of it.
    minTokens: maxTokens,
    sampling: {
      temperature: 0.7,
      topP: 1,
      topK: 0,
      frequencyPenalty: 0,
      presencePenalty: 0,
      seed: 7,
    },
    stop: [],
  } as const
  let characters = 0
  let foundMs: number | undefined
  const beganMs = performance.now()
  const out = outlet(({ text }: { readonly text: string }) => {
    characters += text.length
    if (foundMs === undefined && characters >= piece.length) foundMs = performance.now()
  })
  await Effect.runPromise(writes.generate(request, out))
  return (foundMs ?? performance.now()) - beganMs
}

const speechMs = async ({ speaks }: Engines, { piece }: BareTurn): Promise<number> => {
  let firstMs: number | undefined
  const beganMs = performance.now()
  const request = { text: piece.trim(), voice: { preset: voice }, language: "en", speed: 1 }
  const out = outlet(() => {
    firstMs ??= performance.now()
  })
  await Effect.runPromise(speaks.synthesize(request, out))
  return (firstMs ?? performance.now()) - beganMs
}

const commands = {
  open,
  turn: async (turn: BareTurn): Promise<BareTimes> => {
    if (engines === undefined) throw new Error("no engines are open")
    return {
      transcriptionMs: await transcriptionMs(engines, turn.samples),
      textMs: await textMs(engines, turn),
      speechMs: await speechMs(engines, turn),
    }
  },
}

export type BareCommands = typeof commands

serveCommands(commands)

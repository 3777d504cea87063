// Live transcription without a node, in a process of its own: the built-in model, IncrementalTranscriber over it, and the
// file transcriber for comparison. Its commands return the CPU time of each window.
import { readFileSync } from "node:fs"
import { Effect, Scope } from "effect"
import { IncrementalTranscriber, type Transcribe } from "#actors/live/IncrementalTranscriber.ts"
import { LiveAudio } from "#actors/live/LiveAudio.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import type { TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import { rateHz, speech } from "./Speech.ts"

interface HeardSession {
  readonly text: string
  /** CPU time of each window, including the one of the final result. */
  readonly windowUs: Float64Array
}

/** A range of the speech, seconds. */
interface Stretch {
  readonly from: number
  readonly to: number
}

interface CatalogEntry {
  readonly id: string
  readonly files: Readonly<Record<string, { readonly source: string }>>
  readonly options: Readonly<Record<string, unknown>>
}

/** Files by role. */
interface Weights {
  readonly files: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, unknown>>
  readonly threads: number
}

const catalog = new URL("../../models/catalog.json", import.meta.url)

const load = async (): Promise<TranscriptionEngine> => {
  const { models } = JSON.parse(readFileSync(catalog, "utf8")) as {
    readonly models: ReadonlyArray<CatalogEntry>
  }
  const entry = models.find(({ id }) => id === "stt-large-v3-turbo")
  if (entry === undefined) throw new Error("the built-in catalog has no recogniser")
  const files = Object.fromEntries(
    Object.entries(entry.files).map(([role, { source }]) => [role, new URL(source, catalog).pathname]),
  )
  return acquired({ files, options: entry.options, threads: 1 })
}

const acquired = async (recogniser: Weights): Promise<TranscriptionEngine> => {
  const spec = { modelId: "hearing", adapter: "whisper-hf-onnx", ...recogniser }
  const engine = await Effect.runPromise(whisperHfOnnx.acquire(spec).pipe(Scope.provide(Scope.makeUnsafe())))
  if (engine.kind !== "transcription") throw new Error("the recogniser does not transcribe")
  return engine
}

let loading: Promise<TranscriptionEngine> | undefined
const loaded = (): Promise<TranscriptionEngine> => {
  loading ??= load()
  return loading
}

const cpuUs = (): number => {
  const { system, user } = process.cpuUsage()
  return user + system
}

const ears =
  (engine: TranscriptionEngine): Transcribe<never> =>
  (request, onSegment) =>
    Effect.orDie(
      engine.transcribe(request, {
        started: () => {},
        push: onSegment,
        paused: () => false,
        resumed: Effect.void,
      }),
    )

/** Transcribes a session one window at a time. `fromScratch`: reuses nothing between windows. */
const hear = async (
  samples: Int16Array,
  windowSeconds: number,
  fromScratch: boolean,
): Promise<HeardSession> => {
  const engine = await loaded()
  const audio = new LiveAudio(samples.length)
  const options = { language: undefined, prompt: "", fromScratch }
  const hearing = new IncrementalTranscriber(audio, engine.facts, options, ears(engine))
  const windowUs: Array<number> = []
  const windowSamples = windowSeconds * rateHz
  let text = ""
  for (let until = windowSamples; ; until += windowSamples) {
    const last = until >= samples.length
    const to = Math.min(until, samples.length)
    audio.append(s16ToBytes(samples.subarray(audio.total, to)))
    const before = cpuUs()
    if (!last) await Effect.runPromise(hearing.close(to))
    text = (await Effect.runPromise(hearing.open(to, last))).text
    windowUs.push(cpuUs() - before)
    if (last) return { text, windowUs: Float64Array.from(windowUs) }
  }
}

const commands = {
  /** Loads other weights than the built-in ones. */
  open: async (recogniser: Weights): Promise<void> => {
    loading = acquired(recogniser)
    await loading
  },

  /** Transcribes the speech from one second to another. */
  session: ({ from, fromScratch, to }: Stretch & { readonly fromScratch: boolean }) =>
    hear(speech(to).subarray(from * rateHz), 1, fromScratch),

  /** One fresh pass over this many seconds, milliseconds. */
  file: async ({ seconds }: { readonly seconds: number }): Promise<number> => {
    const samples = speech(seconds)
    await loaded()
    const startMs = performance.now()
    await hear(samples, seconds, true)
    return performance.now() - startMs
  },
}

export type HearingCommands = typeof commands

serveCommands(commands)

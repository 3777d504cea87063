// The floors of the transcription suite, in a process of its own: the engine's native calls alone, and the engine
// without a gateway. The calls are those of a loop over the windows with one decoder call for each token: they are
// recorded while the engine transcribes the audio that way, and their inputs are replayed on sessions with ONNX Runtime's
// default settings, without features, rules or texts. Transcribing windows together is a gain of the engine.
import { Effect, Scope } from "effect"
import type { Tensor } from "onnxruntime-node"
import type { Outlet, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import { emptyPast, type Feeds, openSession, recordingCalls } from "../support/Onnx.ts"
import { type Recogniser, spokenSamples } from "./Models.ts"

/** One native call: of the encoder with its features, of the decoder with its tokens. */
type Call =
  | { readonly on: "encoder"; readonly features: Tensor }
  | {
      readonly on: "decoder"
      readonly ids: Tensor
      readonly cached: Tensor
      readonly fetches: ReadonlyArray<string>
    }

const load = async ({ catalogThreads, files, options: engineOptions, threads }: Recogniser) => {
  const spec = {
    modelId: "bench",
    adapter: "whisper-hf-onnx",
    files,
    options: engineOptions,
    threads,
    // As in a node: threads that the catalog does not name may spin within a call.
    ...(catalogThreads === undefined
      ? { trial: { counts: [threads], otherwise: threads, narrows: true } }
      : {}),
  }
  const engine = await Effect.runPromise(whisperHfOnnx.acquire(spec).pipe(Scope.provide(Scope.makeUnsafe())))
  if (engine.kind !== "transcription") throw new Error("no transcription engine")
  const encoder = await openSession(files.encoder, threads)
  const decoder = await openSession(files.decoder, threads)
  return { engine, encoder, decoder }
}
let loading: ReturnType<typeof load> = Promise.reject(new Error("no weights are open"))
loading.catch(() => {})

const silent: Outlet<"transcription"> = {
  started: () => {},
  push: () => {},
  paused: () => false,
  resumed: Effect.void,
}

/** A whole file through the engine: one window after the other, or several together as the node does. */
const hear = async (engine: TranscriptionEngine, samples: Float32Array, together: boolean): Promise<void> => {
  const { togetherSeconds = 0, windowSeconds } = engine.facts
  const windowSamples = (together ? Math.max(togetherSeconds, windowSeconds) : windowSeconds) * 16_000
  let at = 0
  let previousTokens: ReadonlyArray<number> = []
  while (at < samples.length) {
    const window = samples.subarray(at, at + windowSamples)
    const end = await Effect.runPromise(
      engine.transcribe(
        {
          samples: window,
          language: "en",
          prompt: "",
          previousTokens,
          temperature: 0,
          punctuation: undefined,
          words: false,
          last: at + window.length >= samples.length,
          together,
        },
        silent,
      ),
    )
    at += end.consumedSamples
    previousTokens = end.previousTokens
  }
}

const samplesOf = (seconds: number): Float32Array =>
  Float32Array.from(spokenSamples(seconds), (sample) => sample / 32_768)

/** Records the engine's native calls. */
const callsOf = async (engine: TranscriptionEngine, samples: Float32Array): Promise<ReadonlyArray<Call>> => {
  const calls: Array<Call> = []
  await recordingCalls(
    ({ input_features, input_ids, use_cache_branch }, fetches) => {
      if (input_features !== undefined) calls.push({ on: "encoder", features: input_features })
      else if (input_ids !== undefined && use_cache_branch !== undefined) {
        calls.push({ on: "decoder", ids: input_ids, cached: use_cache_branch, fetches })
      }
    },
    () => hear(engine, samples, false),
  )
  return calls
}

const replay = async (calls: ReadonlyArray<Call>): Promise<void> => {
  const { decoder, encoder } = await loading
  const empty = emptyPast(decoder)
  let hidden: Tensor | undefined
  let past = empty
  for (const call of calls) {
    if (call.on === "encoder") {
      hidden = (await encoder.run({ input_features: call.features })).last_hidden_state as Tensor
      continue
    }
    const first = call.cached.data[0] === 0
    const feeds = {
      ...(first ? empty : past),
      input_ids: call.ids,
      use_cache_branch: call.cached,
      encoder_hidden_states: hidden!,
    }
    const outputs = (await decoder.run(feeds, [...call.fetches])) as Feeds
    const before = past
    past = { ...(first ? empty : past) }
    for (const [name, value] of Object.entries(outputs)) {
      if (!name.startsWith("present.")) continue
      const pastName = name.replace("present.", "past_key_values.")
      past[pastName] = value
      // As the engine does: the garbage collector would take an eighth of the time, and a floor has to be low.
      if (!first) ((before[pastName]!.data as Float32Array).buffer as ArrayBuffer).transfer(0)
    }
  }
}

const timed = async (work: () => Promise<void>): Promise<number> => {
  const beganMs = performance.now()
  await work()
  return performance.now() - beganMs
}

const prepared = new Map<number, { readonly samples: Float32Array; readonly calls: ReadonlyArray<Call> }>()

const commands = {
  open: async (recogniser: Recogniser): Promise<void> => {
    loading = load(recogniser)
    await loading
  },
  /** Returns the number of native calls for the audio. */
  prepare: async (seconds: number): Promise<number> => {
    const { engine } = await loading
    const samples = samplesOf(seconds)
    const calls = await callsOf(engine, samples)
    prepared.set(seconds, { samples, calls })
    return calls.length
  },
  /** Milliseconds of the calls alone. */
  calls: (seconds: number): Promise<number> => timed(() => replay(prepared.get(seconds)?.calls ?? [])),
  /** Milliseconds of the engine: features, calls, rules, texts. */
  engine: async (seconds: number): Promise<number> => {
    const { engine } = await loading
    return timed(() => hear(engine, prepared.get(seconds)?.samples ?? samplesOf(seconds), true))
  },
}

export type BareLoopCommands = typeof commands

serveCommands(commands)

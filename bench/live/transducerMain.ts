// The floors of the live suite on transducers, in a process of its own: the engine's native calls alone, and the engine
// without a gateway. The calls are recorded while the engine transcribes, and replayed on sessions with ONNX Runtime's
// default settings, without features, rules or texts. The encoder's states are those of the replay itself.
import { Effect, Scope } from "effect"
import { InferenceSession, Tensor } from "onnxruntime-node"
import type {
  Outlet,
  TranscribeEnd,
  TranscribeRequest,
  TranscriptionEngine,
} from "#engines/protocol/Engine.ts"
import { transducerOnnx } from "#engines/transducer/TransducerEngine.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import { rateHz, speech } from "./Speech.ts"

export interface Transducer {
  readonly files: Readonly<Record<"encoder" | "decoder" | "joiner" | "vocabulary", string>>
  readonly threads: number
  /** Seconds of a chunk of the encoder. */
  readonly chunkSeconds: number
}

type Feeds = Record<string, Tensor>
type Graph = "encoder" | "decoder" | "joiner"

interface Call {
  readonly on: Graph
  /** Of the encoder without states, except for the first call of a piece. */
  readonly feeds: Feeds
  readonly fetches: ReadonlyArray<string>
}

const silent: Outlet<"transcription"> = {
  started: () => {},
  push: () => {},
  paused: () => false,
  resumed: Effect.void,
}

const load = async ({ chunkSeconds, files, threads }: Transducer) => {
  const spec = { modelId: "bench", adapter: "transducer-onnx", files, options: {}, threads }
  const engine = await Effect.runPromise(transducerOnnx.acquire(spec).pipe(Scope.provide(Scope.makeUnsafe())))
  if (engine.kind !== "transcription") throw new Error("no transcription engine")
  const options = { intraOpNumThreads: threads, interOpNumThreads: 1, logSeverityLevel: 3 } as const
  const open = (graph: Graph) => InferenceSession.create(files[graph], options)
  const sessions = {
    encoder: await open("encoder"),
    decoder: await open("decoder"),
    joiner: await open("joiner"),
  }
  return { chunkSeconds, engine, sessions }
}
let loading: ReturnType<typeof load> = Promise.reject(new Error("no weights are open"))
loading.catch(() => {})

const ask = (
  engine: TranscriptionEngine,
  samples: Float32Array,
  more: Pick<TranscribeRequest, "caption" | "last" | "stream">,
): Promise<TranscribeEnd> => {
  const plain = { language: "en", prompt: "", previousTokens: [], temperature: 0, words: false }
  return Effect.runPromise(engine.transcribe({ ...plain, punctuation: undefined, samples, ...more }, silent))
}

/** A whole file: one piece after the other. */
const hearFile = async (engine: TranscriptionEngine, samples: Float32Array): Promise<void> => {
  const most = Math.floor(engine.facts.windowSeconds * rateHz)
  for (let at = 0; at < samples.length; ) {
    const window = samples.subarray(at, at + most)
    at += (await ask(engine, window, { last: at + window.length >= samples.length })).consumedSamples
  }
}

let streams = 0
/** A live session: a request for each chunk, with all audio since the beginning of the piece. */
const hearChunks = async (
  { chunkSeconds, engine }: Awaited<typeof loading>,
  samples: Float32Array,
): Promise<void> => {
  const chunk = chunkSeconds * rateHz
  let from = 0
  let stream = ++streams
  for (let to = chunk; to <= samples.length; to += chunk) {
    const heard = samples.subarray(from, to)
    const { consumedSamples } = await ask(engine, heard, { caption: true, last: false, stream })
    // The piece has ended before the audio.
    if (consumedSamples === heard.length) continue
    from += consumedSamples
    stream = ++streams
  }
}

const stateNames = {
  cache_last_channel: "cache_last_channel_next",
  cache_last_time: "cache_last_time_next",
  cache_last_channel_len: "cache_last_channel_next_len",
} as const

const copied = (feeds: Feeds, names: ReadonlyArray<string>): Feeds =>
  Object.fromEntries(
    names.map((name) => {
      const { data, dims, type } = feeds[name]!
      return [name, new Tensor(type as "float32", (data as Float32Array).slice(), dims)]
    }),
  )

const graphOf = (feeds: Feeds): Graph =>
  feeds.audio_signal !== undefined ? "encoder" : feeds.targets !== undefined ? "decoder" : "joiner"

/** The native calls of the engine meanwhile. */
const callsOf = async (work: () => Promise<void>): Promise<ReadonlyArray<Call>> => {
  const calls: Array<Call> = []
  // `run` is a method of the session's class, which the package does not export.
  const prototype = Object.getPrototypeOf((await loading).sessions.encoder) as {
    run: InferenceSession["run"]
  }
  const original = prototype.run
  const recorder = function (this: InferenceSession, feeds: Feeds, fetches: ReadonlyArray<string>) {
    const on = graphOf(feeds)
    const begins = on !== "encoder" || Number(feeds.cache_last_channel_len!.data[0]) === 0
    const names = Object.keys(feeds).filter((name) => begins || !(name in stateNames))
    calls.push({ on, feeds: copied(feeds, names), fetches })
    return original.call(this, feeds, [...fetches])
  }
  prototype.run = recorder as typeof original
  try {
    await work()
  } finally {
    prototype.run = original
  }
  return calls
}

const replay = async (calls: ReadonlyArray<Call>): Promise<void> => {
  const { sessions } = await loading
  let states: Feeds = {}
  for (const { feeds, fetches, on } of calls) {
    const outputs = await sessions[on].run({ ...(on === "encoder" ? states : {}), ...feeds }, [...fetches])
    if (on === "encoder")
      states = Object.fromEntries(
        Object.entries(stateNames).map(([input, output]) => [input, outputs[output] as Tensor]),
      )
  }
}

const timed = async (work: () => Promise<void>): Promise<number> => {
  const beganMs = performance.now()
  await work()
  return performance.now() - beganMs
}

/** A file, or a live session that asks after each chunk. */
export interface Work {
  readonly seconds: number
  readonly live: boolean
}

const samplesOf = (seconds: number): Float32Array =>
  Float32Array.from(speech(seconds), (sample) => sample / 32_768)

const engineWork = async ({ live, seconds }: Work): Promise<() => Promise<void>> => {
  const loaded = await loading
  const samples = samplesOf(seconds)
  return () => (live ? hearChunks(loaded, samples) : hearFile(loaded.engine, samples))
}

const recorded = new Map<string, ReadonlyArray<Call>>()
const keyOf = ({ live, seconds }: Work): string => `${seconds} ${live}`

const commands = {
  open: async (transducer: Transducer): Promise<void> => {
    loading = load(transducer)
    await loading
  },
  /** Returns the number of the encoder's calls for this work. */
  prepare: async (work: Work): Promise<number> => {
    const calls = await callsOf(await engineWork(work))
    recorded.set(keyOf(work), calls)
    return calls.filter(({ on }) => on === "encoder").length
  },
  /** Milliseconds of the calls alone. */
  calls: (work: Work): Promise<number> => timed(() => replay(recorded.get(keyOf(work)) ?? [])),
  /** Milliseconds of the engine: features, calls, rules, texts. */
  engine: async (work: Work): Promise<number> => timed(await engineWork(work)),
}

export type TransducerCommands = typeof commands

serveCommands(commands)

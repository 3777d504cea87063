// The speech engine without a gateway, in a process of its own: the time of its first piece, and the cost of all
// pieces. The floor of every first audio of the suite.
import { Effect, Scope } from "effect"
import { kokoroOnnx } from "#engines/kokoro/KokoroOnnx.ts"
import type { Outlet, SpeechEngine } from "#engines/protocol/Engine.ts"
import type { SpokenInput } from "../support/bareOnnxMain.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import { recordingCalls } from "../support/Onnx.ts"
import { demoFiles, voice } from "./Models.ts"

interface Weights {
  readonly files: Readonly<Record<string, string>>
  readonly threads: number
  /** As in a node: threads that the catalog does not name may spin within a call. */
  readonly spins: boolean
}

const load = async ({ files, spins, threads }: Weights): Promise<SpeechEngine> => {
  const trial = { counts: [threads], otherwise: threads, narrows: true }
  const spec = {
    modelId: "bench",
    adapter: "kokoro-onnx",
    files,
    options: { slots: 8 },
    threads,
    ...(spins ? { trial } : {}),
  }
  const engine = await Effect.runPromise(kokoroOnnx.acquire(spec).pipe(Scope.provide(Scope.makeUnsafe())))
  if (engine.kind !== "speech") throw new Error("no speech engine")
  return engine
}
let loading: Promise<SpeechEngine> | undefined
const loaded = (): Promise<SpeechEngine> => {
  loading ??= load({ files: demoFiles, threads: 1, spins: false })
  return loading
}

interface BareReading {
  readonly firstPieceMs: number
  readonly realTimeFactor: number
}

const once = async (text: string): Promise<BareReading> => {
  const engine = await loaded()
  let firstPieceMs = Number.NaN
  const beganMs = performance.now()
  const out: Outlet<"speech"> = {
    started: () => {},
    push: () => {
      if (Number.isNaN(firstPieceMs)) firstPieceMs = performance.now() - beganMs
    },
    paused: () => false,
    resumed: Effect.void,
  }
  const request = { text, voice: { preset: voice }, language: "en", speed: 1 }
  const { computeMs = Number.NaN, samples } = await Effect.runPromise(engine.synthesize(request, out))
  return { firstPieceMs, realTimeFactor: computeMs / (samples / 24) }
}

/** What the engine feeds to the model for the text's first piece. */
const firstInput = async (text: string): Promise<SpokenInput> => {
  await loaded()
  const inputs: Array<SpokenInput> = []
  await recordingCalls(
    ({ input_ids, style }) => {
      inputs.push({
        symbols: [...(input_ids?.data as BigInt64Array)].map(Number),
        style: [...(style?.data as Float32Array)],
      })
    },
    () => once(text),
  )
  const [first] = inputs
  if (first === undefined) throw new Error("no call of the model")
  return first
}

const commands = {
  /** Loads other weights than the demonstration's. */
  open: async (weights: Weights): Promise<void> => {
    loading = load(weights)
    await loading
  },
  once,
  firstInput,
  inTurn: async ({ count, text }: { readonly count: number; readonly text: string }) => {
    const readings: Array<BareReading> = []
    for (let at = 0; at < count; at++) readings.push(await once(text))
    return readings
  },
}

export type BareEngineCommands = typeof commands

serveCommands(commands)

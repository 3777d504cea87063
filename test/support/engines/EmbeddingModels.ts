// Small embedding models for tests, and requests to their engine in the test's own process.
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"
import { llamaEmbedding } from "#engines/llama/embedding/LlamaEmbedding.ts"
import type { EmbeddingEngine, EmbedRequest, EngineError } from "#engines/protocol/Engine.ts"
import { type BertShape, writeEmbeddingModel } from "../../../bench/sizes/embedding/EmbeddingWeights.ts"
import { uses } from "../groups/Uses.ts"
import { CollectingOutlet, engineSpec } from "./EngineHarness.ts"

const bertShape: BertShape = {
  width: 64,
  layers: 2,
  heads: 2,
  feedForward: 128,
  contextTokens: 64,
  vocabularySize: 4_000,
  pooling: "mean",
}

/** Writes a generated model of BERT's shape into the folder. */
export const writeBert = async (folder: string, changes: Partial<BertShape> = {}): Promise<string> => {
  const shape = { ...bertShape, ...changes }
  const path = join(folder, `bert-${shape.pooling}-${shape.width}.gguf`)
  await writeEmbeddingModel(path, "test", shape)
  return path
}

/** The built-in text model, a decoder. Its file names no pooling. */
export const decoderModel = (): string => {
  uses("weights", "a model's weights")
  return fileURLToPath(new URL("../../../models/llama-demo/llama-demo-Q8_0.gguf", import.meta.url))
}

export const openEmbedding = (
  weights: string,
  options: Readonly<Record<string, unknown>> = {},
): Effect.Effect<EmbeddingEngine, EngineError, Scope.Scope> =>
  Effect.flatMap(llamaEmbedding.acquire(engineSpec("llama-embedding", { weights }, options)), (engine) =>
    engine.kind === "embedding" ? Effect.succeed(engine) : Effect.die(new Error("is no embedding engine")),
  )

/** The vectors of the inputs, in their order. */
export const vectorsOf = (
  engine: EmbeddingEngine,
  inputs: EmbedRequest["inputs"],
  changes: Partial<EmbedRequest> = {},
): Effect.Effect<ReadonlyArray<ReadonlyArray<number>>, EngineError> =>
  Effect.suspend(() => {
    const out = new CollectingOutlet<"embedding">()
    return Effect.as(engine.embed({ inputs, format: "float", ...changes }, out), out).pipe(
      Effect.map(({ units }) =>
        units.flatMap(({ texts }) => texts.map((text) => JSON.parse(text) as ReadonlyArray<number>)),
      ),
    )
  })

export const dot = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)

export const cosine = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number =>
  dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))

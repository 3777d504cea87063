// The adapter of GGUF embedding models: texts in, vectors of length 1 out.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  type EmbeddingEngine,
  type EmbedEnd,
  type EmbedRequest,
  type EngineDescriptor,
  type EngineError,
  loadFailed,
  type Outlet,
} from "../../protocol/Engine.ts"
import { boundProblem } from "../../shared/text/EmbedBounds.ts"
import { EmbedLoop } from "./EmbedLoop.ts"
import { type EmbeddingModel, loadEmbedding } from "./LoadEmbedding.ts"
import { EmbeddingOptions } from "./Options.ts"

const decodeOptions = Schema.decodeUnknownEffect(EmbeddingOptions)

const embedder = ({ dimensions, tokensOf }: EmbeddingModel, loop: EmbedLoop): EmbeddingEngine["embed"] =>
  Effect.fnUntraced(function* (
    request: EmbedRequest,
    out: Outlet<"embedding">,
  ): Effect.fn.Return<EmbedEnd, EngineError> {
    const problem = boundProblem(dimensions, request)
    if (problem !== undefined) return yield* problem
    const tokens = yield* tokensOf(request.inputs)
    const promptTokens = tokens.reduce((sum, { length }) => sum + length, 0)
    out.started({ promptTokens })
    yield* loop.run(tokens, request, out)
    return { promptTokens }
  })

export const llamaEmbedding: EngineDescriptor<"embedding"> = {
  adapter: "llama-embedding",
  kind: "embedding",
  acquire: Effect.fnUntraced(function* (spec) {
    const options = yield* Effect.mapError(decodeOptions(spec.options), (error) =>
      loadFailed("", `options: ${error.message}`),
    )
    const model = yield* loadEmbedding(spec, options)
    const { contextTokens, dimensions, sequences, stepped, summary } = model
    const bounds = { tokens: options.batchTokens, sequences }
    const loop = yield* Effect.acquireRelease(
      Effect.sync(() => new EmbedLoop(stepped.native, bounds)),
      (opened) => Effect.promise(() => opened.close()),
    )
    return {
      kind: "embedding",
      facts: { contextTokens, dimensions, slots: options.slots, summary },
      embed: embedder(model, loop),
      threads: stepped.threads,
    } satisfies EmbeddingEngine
  }),
}

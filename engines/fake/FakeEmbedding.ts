// The fake embedding: a vector for each text that depends on its words only, so that texts with words in common are similar.
// It counts one token for each word, or for each token id.
import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { maxRequestTokens } from "../protocol/Embedding.ts"
import type {
  EmbeddingEngine,
  EmbedEnd,
  EmbedInput,
  EmbedRequest,
  EngineDescriptor,
  EngineError,
  Outlet,
} from "../protocol/Engine.ts"
import { decodeOptions } from "../shared/files/EngineSpecFiles.ts"
import { boundProblem, tooLong, tooManyTokens } from "../shared/text/EmbedBounds.ts"
import { vectorText } from "../shared/text/VectorText.ts"
import { FakeEmbeddingOptions } from "./Options.ts"

const wordsOf = (input: EmbedInput): ReadonlyArray<string> =>
  typeof input === "string"
    ? input.split(/\s+/u).filter((word) => word !== "")
    : input.map((token) => String(token))

/** Each word sets one value. */
const vectorOf = (words: ReadonlyArray<string>, dimensions: number): Float32Array => {
  const vector = new Float32Array(dimensions)
  for (const word of words) {
    const at = hash("sha1", word, "buffer").readUInt32LE() % dimensions
    vector[at] = vector[at]! + 1
  }
  return vector
}

export const fakeEmbedding: EngineDescriptor<"embedding"> = {
  adapter: "fake-embedding",
  kind: "embedding",
  acquire: Effect.fnUntraced(function* (spec) {
    const { callMs, contextTokens, dimensions, slots } = yield* decodeOptions(FakeEmbeddingOptions, spec)
    const embed = Effect.fnUntraced(function* (
      request: EmbedRequest,
      out: Outlet<"embedding">,
    ): Effect.fn.Return<EmbedEnd, EngineError> {
      const problem = boundProblem(dimensions, request)
      if (problem !== undefined) return yield* problem
      const inputs = request.inputs.map(wordsOf)
      const long = inputs.findIndex(({ length }) => length > contextTokens)
      if (long >= 0) return yield* tooLong(long, inputs[long]!.length, contextTokens)
      const promptTokens = inputs.reduce((sum, { length }) => sum + length, 0)
      if (promptTokens > maxRequestTokens) return yield* tooManyTokens()
      out.started({ promptTokens })
      for (const words of inputs) {
        if (callMs > 0) yield* Effect.sleep(callMs)
        if (out.paused()) yield* out.resumed
        out.push({ texts: [vectorText(vectorOf(words, dimensions), request)], promptTokens: words.length })
      }
      return { promptTokens }
    })
    const engine: EmbeddingEngine = {
      kind: "embedding",
      facts: { contextTokens, dimensions, slots, summary: "vectors of words, no weights" },
      embed,
    }
    return engine
  }),
}

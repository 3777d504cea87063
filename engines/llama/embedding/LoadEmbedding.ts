// A loaded GGUF file with a context for embeddings, inside a Scope; closing the scope frees the memory.
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type LlamaModel, LlamaVocabularyType } from "node-llama-cpp"
import { type EngineError, type EngineSpec, loadFailed } from "../../protocol/Engine.ts"
import { openLlama, summaryOf, weightsOf } from "../model/LoadedGguf.ts"
import { makeInterrupt } from "../native/Interrupt.ts"
import { type Libllama, onThread, type Pointer } from "../native/Libllama.ts"
import { NativeLog } from "../native/NativeLog.ts"
import { flashAttentionFor, keepThreads, openFile, openLibrary, roundedUp } from "../native/OpenLibllama.ts"
import { textLimits } from "../prompt/TextLength.ts"
import { measuredThreads, type SteppedContext } from "../steps/StepThreads.ts"
import { type EmbeddingContext, embeddingContext } from "./EmbeddingContext.ts"
import { inputTokens, type TokensOf } from "./InputTokens.ts"
import type { EmbeddingOptions } from "./Options.ts"

/** `LLAMA_POOLING_TYPE_*` of llama.h. */
const poolingTypes = { mean: 1, cls: 2, last: 3 }

/** Inputs of one evaluation. More of them save nothing: its tokens bound it. */
const sequences = 64

export interface EmbeddingModel {
  readonly stepped: SteppedContext<EmbeddingContext>
  readonly tokensOf: TokensOf
  readonly contextTokens: number
  readonly dimensions: number
  /** Inputs of one evaluation. */
  readonly sequences: number
  readonly summary: string
}

/** The number of the pooling, or why there is none. */
const poolingOf = (named: number | undefined, chosen: EmbeddingOptions["pooling"]): number | string => {
  if (chosen !== undefined) return poolingTypes[chosen]
  if (named !== undefined && Object.values(poolingTypes).includes(named)) return named
  if (named === 4) return "is a reranking model: it scores pairs of texts and gives no embeddings"
  const what =
    named === undefined || named === 0 || named === -1 ? "no pooling" : `the unknown pooling ${named}`
  return `names ${what} in its metadata; options.pooling (mean, cls or last) says how the vectors of its tokens become one`
}

const namedPooling = ({ architecture, fileInfo }: LlamaModel): number | undefined => {
  const { metadata } = fileInfo
  const section: unknown = (metadata as unknown as Readonly<Record<string, unknown>>)[String(architecture)]
  if (typeof section !== "object" || section === null || !("pooling_type" in section)) return undefined
  return Number(section.pooling_type)
}

interface ContextTerms {
  readonly contextTokens: number
  readonly pooling: number
  readonly threads: number
  readonly options: EmbeddingOptions
  readonly log: NativeLog
}

/** Most tokens of an evaluation. An input is never divided, because its pooling needs all of its tokens. */
const capacityOf = (contextTokens: number, { batchTokens }: EmbeddingOptions): number =>
  roundedUp(Math.max(batchTokens, contextTokens))

const openContext = (library: Libllama, weights: Pointer, terms: ContextTerms) => {
  const { contextTokens, log, options, pooling, threads } = terms
  const interrupt = makeInterrupt(library)
  const capacity = capacityOf(contextTokens, options)
  return Effect.acquireRelease(
    log.attempt("no memory for the context", async () => {
      const context = await onThread(library.makeContext, weights, {
        ...library.contextDefaults,
        n_ctx: capacity,
        n_seq_max: sequences,
        n_batch: capacity,
        n_ubatch: capacity,
        n_threads: threads,
        n_threads_batch: threads,
        // Off by default only where tokens are generated one by one.
        flash_attn_type: flashAttentionFor({ ...options, gpu: "auto" }),
        embeddings: true,
        pooling_type: pooling,
        // With memory of their own for each sequence, sequences of different lengths would be evaluated one by one.
        kv_unified: true,
        abort_callback: interrupt.callback,
        abort_callback_data: interrupt.data,
      })
      if (context === null) throw new Error("Failed to create context")
      return { context, interrupt, capacity }
    }),
    ({ context }) => Effect.promise(() => onThread(library.freeContext, context)),
  )
}

/** Evaluates one token, so that a model that cannot give embeddings fails at its load. */
const warmUp = async (native: EmbeddingContext): Promise<void> => {
  await native.decode([{ sequenceId: 0, position: 0, tokens: [0], logits: true }])
  if (!native.vector(0).every(Number.isFinite)) throw new Error("its embeddings are not finite numbers")
}

export const loadEmbedding = (
  spec: EngineSpec,
  options: EmbeddingOptions,
): Effect.Effect<EmbeddingModel, EngineError, Scope.Scope> =>
  Effect.gen(function* () {
    const { threads } = spec
    const path = yield* weightsOf(spec)
    const name = basename(path)
    const log = new NativeLog(path)
    const llama = yield* openLlama(spec, options, log)
    const opening = { llama, path, options, log }
    const library = yield* openLibrary(opening)
    const { model, weights } = yield* openFile(library, opening)
    const { hasDecoder, hasEncoder } = model.fileInsights
    if (hasEncoder && hasDecoder)
      return yield* loadFailed("", `${name} has an encoder and a decoder, which gives no embeddings`)
    const pooling = poolingOf(namedPooling(model), options.pooling)
    if (typeof pooling === "string") return yield* loadFailed("", `${name} ${pooling}`)
    const contextTokens = Math.min(options.contextTokens, library.trainedContext(weights))
    const terms = { contextTokens, pooling, threads, options, log }
    const { capacity, context, interrupt } = yield* openContext(library, weights, terms)
    yield* keepThreads(library, context, { threads, log })
    const dimensions = library.embeddingWidth(weights)
    const native = embeddingContext({ library, context, dimensions, capacity, interrupt })
    const stepped = yield* log.attempt(`cannot run ${name}`, async () => {
      await warmUp(native)
      return measuredThreads(native, spec, sequences)
    })
    const isBytePair = model.vocabularyType === LlamaVocabularyType.bpe
    const vocabulary = library.vocabulary(weights)
    return {
      stepped,
      tokensOf: inputTokens({ library, vocabulary, isBytePair, limits: textLimits(model, contextTokens) }),
      contextTokens,
      dimensions,
      sequences,
      summary: `${summaryOf({ model, parameters: library.parameters(weights) })}, ${dimensions} dimensions`,
    }
  })

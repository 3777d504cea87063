// Loads a model through llama.cpp's C interface. node-llama-cpp opens the library, reads the file, decides how many layers
// a GPU takes, and holds the vocabulary; weights and context are loaded here.
import { basename, dirname } from "node:path"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { LlamaModel } from "node-llama-cpp"
import { LogitSampler } from "../sampling/LogitSampler.ts"
import { Rows } from "../sampling/Rows.ts"
import { massesOf, scoreOf } from "../sampling/Scores.ts"
import { fileInfoOf, vocabularyModel } from "./Internals.ts"
import { type Interrupt, makeInterrupt } from "./Interrupt.ts"
import { type Libllama, onThread, openLibllama, type Pointer } from "./Libllama.ts"
import { libllamaContext } from "./LibllamaContext.ts"
import { mostRows, type NativeSpec, type OpenNative } from "./Native.ts"
import { isNativeObject, loadedObjects } from "./NativeObjects.ts"
import { makeThreadpool } from "./Threadpool.ts"

/** `LLAMA_LOAD_MODE_*` and `LLAMA_FLASH_ATTN_TYPE_*` of llama.h. */
const loadMode = { copied: 0, mapped: 1 }
const lazyOff = 0
const flashAttentionOf = { auto: -1, off: 0, on: 1 }

/** `LLAMA_ROPE_TYPE_MROPE` and `LLAMA_ROPE_TYPE_IMROPE`. */
const mropeTypes: ReadonlySet<number> = new Set([8, 40])

/** llama.cpp rounds context sizes to a multiple of this. */
const contextStep = 256
export const roundedUp = (tokens: number): number => Math.ceil(tokens / contextStep) * contextStep

/** Folder of the library that node-llama-cpp has loaded: opening the same file gives the same mapping, backends and log. */
const loadedFolder = (): string => {
  const found = loadedObjects().find((path) => isNativeObject(path, "llama"))
  if (found === undefined) throw new Error("node-llama-cpp has loaded no libllama")
  return dirname(found)
}

export const openLibrary = ({ log }: Pick<NativeSpec, "log">) =>
  log.attempt("no native library for this machine", async () => openLibllama(loadedFolder()))

/** What opening the weights needs. */
interface WeightsSpec extends Pick<NativeSpec, "llama" | "log" | "path"> {
  readonly options: Pick<NativeSpec["options"], "gpuLayers">
}

/** Where the weights of a file go. */
interface Placed {
  readonly gpuLayers: number
  readonly useMmap: boolean
}

/** The vocabulary and the weights of a file: on the processor at the same time, else after each other, because the library decides. */
export const openFile = (library: Libllama, spec: WeightsSpec) =>
  Effect.gen(function* () {
    const { llama, log, options, path } = spec
    const what = `cannot load ${basename(path)}`
    const opened = (open: () => Promise<LlamaModel>) =>
      Effect.acquireRelease(log.attempt(what, open), (model) => Effect.promise(() => model.dispose()))
    if (llama.gpu !== false) {
      const model = yield* opened(() =>
        llama.loadModel({ modelPath: path, gpuLayers: options.gpuLayers, vocabOnly: true }),
      )
      return { model, weights: yield* openWeights(library, model, spec) }
    }
    const info = yield* log.attempt(what, () => fileInfoOf(path))
    const placed: Placed = { gpuLayers: 0, useMmap: llama.supportsMmap }
    const opening = yield* Effect.forkScoped(openWeights(library, placed, spec))
    const model = yield* opened(() => vocabularyModel(llama, path, info))
    return { model, weights: yield* Fiber.join(opening) }
  })

const openWeights = (library: Libllama, placed: Placed, { path, log }: WeightsSpec) =>
  Effect.acquireRelease(
    log.attempt(`cannot load ${basename(path)}`, async () => {
      const loaded = await onThread(library.loadModel, path, {
        ...library.modelDefaults,
        n_gpu_layers: placed.gpuLayers,
        load_mode: placed.useMmap ? loadMode.mapped : loadMode.copied,
        lazy_mode: lazyOff,
      })
      if (loaded === null) throw new Error("Failed to load model")
      return loaded
    }),
    (weights) => Effect.promise(() => onThread(library.freeModel, weights)),
  )

/** What the operator has chosen; otherwise the library's choice on a GPU, off on the CPU. */
export const flashAttentionFor = ({
  flashAttention,
  gpu,
}: Pick<NativeSpec["options"], "flashAttention" | "gpu">): number => {
  if (flashAttention === undefined) return gpu === "off" ? flashAttentionOf.off : flashAttentionOf.auto
  return flashAttention ? flashAttentionOf.on : flashAttentionOf.off
}

const openContext = (
  library: Libllama,
  weights: Pointer,
  contextTokens: number,
  interrupt: Interrupt,
  { options, threads, log }: NativeSpec,
) =>
  Effect.acquireRelease(
    log.attempt("no memory for the context", async () => {
      const context = await onThread(library.makeContext, weights, {
        ...library.contextDefaults,
        n_ctx: contextTokens * options.slots,
        n_seq_max: options.slots,
        n_batch: options.batchTokens,
        n_ubatch: options.batchTokens,
        n_outputs_max: Math.max(options.slots, Math.min(mostRows, options.batchTokens)),
        n_threads: threads,
        n_threads_batch: threads,
        flash_attn_type: flashAttentionFor(options),
        swa_full: false,
        abort_callback: interrupt.callback,
        abort_callback_data: interrupt.data,
      })
      if (context === null) throw new Error("Failed to create context")
      return context
    }),
    (context) => Effect.promise(() => onThread(library.freeContext, context)),
  )

/** Gives the context a thread pool of its own. Does nothing if no matching library is loaded. */
export const keepThreads = (
  library: Libllama,
  context: Pointer,
  { threads, log }: Pick<NativeSpec, "log" | "threads">,
) =>
  Effect.acquireRelease(
    log.attempt("no threads for the context", async () => {
      const made = threads > 1 ? makeThreadpool(loadedObjects(), threads) : undefined
      if (made !== undefined) library.attachThreadpool(context, made.pool, made.pool)
      return made
    }),
    (made) =>
      Effect.sync(() => {
        if (made === undefined) return
        library.detachThreadpool(context)
        made.free()
      }),
  )

export const openLibllamaContext: OpenNative = (spec) =>
  Effect.gen(function* () {
    const { options } = spec
    const library = yield* openLibrary(spec)
    const { model, weights } = yield* openFile(library, spec)
    const contextTokens = Math.min(options.contextTokens, library.trainedContext(weights))
    const interrupt = makeInterrupt(library)
    const context = yield* openContext(library, weights, roundedUp(contextTokens), interrupt, spec)
    yield* keepThreads(library, context, spec)
    const vocabularySize = library.vocabularySize(library.vocabulary(weights))
    const rows = new Rows(vocabularySize)
    return {
      native: libllamaContext({
        library,
        context,
        vocabularySize,
        slots: options.slots,
        batchTokens: options.batchTokens,
        rows: {
          width: library.inputWidth(weights),
          coordinates: mropeTypes.has(library.ropeType(weights)) ? 4 : 1,
        },
        offloaded: model.gpuLayers > 0,
        interrupt,
        sampler: (sampling, biases) => new LogitSampler(sampling, rows, biases),
        score: (row, token, top) => scoreOf(rows, row, token, top),
        masses: (row, groups) => massesOf(rows, row, groups),
      }),
      model,
      parameters: library.parameters(weights),
      device: {
        offloaded: model.gpuLayers > 0,
        objects: loadedObjects(),
        makeInterrupt: () => makeInterrupt(library),
      },
      contextTokens,
    }
  })

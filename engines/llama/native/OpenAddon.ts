// Loads a model through node-llama-cpp's own classes.
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import type { LlamaModel } from "node-llama-cpp"
import { nativeContext, nativeModel } from "./Addon.ts"
import type { NativeSpec, OpenNative } from "./Native.ts"

const openWeights = ({ llama, path, options, log }: NativeSpec) =>
  Effect.acquireRelease(
    log.attempt(`cannot load ${basename(path)}`, () =>
      llama.loadModel({ modelPath: path, gpuLayers: options.gpuLayers }),
    ),
    (model) => Effect.promise(() => model.dispose()),
  )

const openContext = (model: LlamaModel, { options, threads, log }: NativeSpec) =>
  Effect.acquireRelease(
    log.attempt("no memory for the context", () =>
      model.createContext({
        contextSize: Math.min(options.contextTokens, model.trainContextSize),
        sequences: options.slots,
        batchSize: options.batchTokens,
        threads,
        flashAttention: options.flashAttention ?? (options.gpu === "off" ? false : "auto"),
        // Fail instead of making a smaller context: the catalog publishes its size as the limit.
        failedCreationRemedy: false,
      }),
    ),
    (context) => Effect.promise(() => context.dispose()),
  )

export const openAddonContext: OpenNative = (spec) =>
  Effect.gen(function* () {
    const model = yield* openWeights(spec)
    const context = yield* openContext(model, spec)
    return {
      native: nativeContext(spec.llama, model, context),
      model,
      parameters: nativeModel(model).parameters,
      // The library rounds the size up; the requested size is kept.
      contextTokens: Math.min(spec.options.contextTokens, model.trainContextSize, context.contextSize),
    }
  })

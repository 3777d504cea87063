// The only file that uses node-llama-cpp's undocumented internals: a context for catalog entries with `native: "addon"`,
// and for every entry the spellings of tokens and the template renderer.
//
// The library evaluates every sequence in an async generator of its own, with a lock, a timer and a copy of the whole context
// for each token. This file drives the library's native batch directly: one call a step for all sequences. The names are the
// library's own. Its version is pinned, and a model is not loaded if one of them is missing.
import type { Llama, LlamaContext, LlamaModel } from "node-llama-cpp"
import type { Sampling } from "../../protocol/Engine.ts"
import type { NativeContext, SavedState } from "./Native.ts"

interface AddonSampler {
  readonly applyConfig: (config: Record<string, unknown>) => void
  readonly dispose: () => void
}

interface AddonCheckpoint {
  readonly init: (context: AddonContext, sequenceId: number) => Promise<void>
  readonly dispose: () => void
  readonly size: number
  readonly maxPos: number
}

interface AddonContext {
  readonly initBatch: (tokens: number) => void
  readonly addToBatch: (
    sequenceId: number,
    firstPosition: number,
    tokens: Uint32Array,
    logitIndexes: Uint32Array,
  ) => Uint32Array
  readonly decodeBatch: () => Promise<void>
  readonly setThreads: (threads: number) => void
  readonly sampleToken: (row: number, sampler: AddonSampler) => Promise<number>
  readonly disposeSequence: (sequenceId: number) => void
  readonly removeTokenCellsFromSequence: (sequenceId: number, from: number, to: number) => boolean
  readonly restoreCheckpoint: (checkpoint: AddonCheckpoint, lastPosition: number) => Promise<boolean>
}

interface AddonModel {
  readonly getTokenString: (token: number) => string | undefined
  readonly getTokenAttributes: (token: number) => number
  readonly getTotalParameters: () => number
}

interface AddonJinja {
  readonly render: (variables: Record<string, unknown>) => string
}

interface Bindings {
  readonly AddonJinjaRenderer: new (template: string) => AddonJinja
  readonly AddonSampler: new (model: AddonModel) => AddonSampler
  readonly AddonContextSequenceCheckpoint: new () => AddonCheckpoint
}

/** What LoadedGguf reads of each token, and the model's size. */
export interface NativeModel {
  readonly spelled: (token: number) => string
  readonly attributes: (token: number) => number
  readonly parameters: number
}

/** The library is not the version that this file was written for. */
class UnknownInternals extends Error {}

const checked = <T extends object>(
  value: unknown,
  names: ReadonlyArray<keyof T & string>,
  what: string,
): T => {
  const has = (name: string) => typeof (value as Record<string, unknown>)[name] === "function"
  if (typeof value !== "object" || value === null || !names.every(has))
    throw new UnknownInternals(`node-llama-cpp: unexpected ${what}; edgewise needs exactly version 3.21.1`)
  return value as T
}

const internals = (model: LlamaModel) =>
  checked<AddonModel>(
    (model as unknown as { readonly _model: unknown })._model,
    ["getTokenString", "getTokenAttributes", "getTotalParameters"],
    "model",
  )

const bindingsOf = (llama: Llama): Bindings =>
  checked<Bindings>(
    (llama as unknown as { readonly _bindings: unknown })._bindings,
    ["AddonSampler", "AddonContextSequenceCheckpoint", "AddonJinjaRenderer"],
    "bindings",
  )

/** llama.cpp's own Jinja: renders the same text as llama.cpp's server. */
export const nativeJinja = (llama: Llama) => (template: string) => {
  const renderer = new (bindingsOf(llama).AddonJinjaRenderer)(template)
  return (variables: Record<string, unknown>): string => renderer.render(variables)
}

export const nativeModel = (model: LlamaModel): NativeModel => {
  const addon = internals(model)
  return {
    spelled: (token) => addon.getTokenString(token) ?? "",
    attributes: addon.getTokenAttributes.bind(addon),
    parameters: addon.getTotalParameters(),
  }
}

/**
 * A sampler remembers the tokens drawn so far, which is what the penalties count: generated tokens only.
 * `penalty: 1` switches the library's default repeat penalty off. Without `topK` the whole vocabulary stays, and is
 * not sorted.
 */
const samplerConfig = (sampling: Sampling, contextTokens: number) => ({
  temperature: sampling.temperature,
  minP: 0,
  topP: sampling.topP,
  ...(sampling.topK > 0 ? { topK: sampling.topK } : {}),
  seed: sampling.seed >>> 0,
  repeatPenalty: 1,
  repeatPenaltyTokens: new Uint32Array(0),
  repeatPenaltyMaxTokens: contextTokens,
  repeatPenaltyFrequencyPenalty: sampling.frequencyPenalty,
  repeatPenaltyPresencePenalty: sampling.presencePenalty,
})

interface SavedAddonState extends SavedState {
  readonly checkpoint: AddonCheckpoint
}

export const nativeContext = (llama: Llama, model: LlamaModel, context: LlamaContext): NativeContext => {
  const addon = checked<AddonContext>(
    (context as unknown as { readonly _ctx: unknown })._ctx,
    [
      "initBatch",
      "addToBatch",
      "decodeBatch",
      "setThreads",
      "sampleToken",
      "disposeSequence",
      "removeTokenCellsFromSequence",
      "restoreCheckpoint",
    ],
    "context",
  )
  const bindings = bindingsOf(llama)
  const addonModel = internals(model)
  const noRow = new Uint32Array(0)
  // The native side reads it before `addToBatch` returns, so one array serves every item of one token.
  const oneToken = new Uint32Array(1)
  const oneRow = new Uint32Array(1)

  let threads = 0
  return {
    setThreads: (wanted) => {
      if (wanted === threads) return
      threads = wanted
      addon.setThreads(wanted)
    },
    decode: async (items) => {
      let size = 0
      for (const { tokens } of items) size += tokens.length
      addon.initBatch(size)
      const rows = items.map(({ sequenceId, position, tokens, logits }) => {
        const single = tokens.length === 1
        if (single) oneToken[0] = tokens[0]!
        oneRow[0] = tokens.length - 1
        const batched = single ? oneToken : Uint32Array.from(tokens)
        return addon.addToBatch(sequenceId, position, batched, logits ? oneRow : noRow)[0] ?? -1
      })
      await addon.decodeBatch()
      return rows
    },
    // The binding offers no abort callback.
    interrupt: () => {},
    sampler: (sampling) => {
      const sampler = new bindings.AddonSampler(addonModel)
      sampler.applyConfig(samplerConfig(sampling, context.contextSize))
      return {
        sample: (row) => addon.sampleToken(row, sampler),
        // Only penalties need it, and only a choice leads to tokens that are not sampled.
        count: () => {},
        dispose: () => sampler.dispose(),
      }
    },
    cut: (sequenceId, length, heldLength) =>
      addon.removeTokenCellsFromSequence(sequenceId, length, heldLength),
    clear: (sequenceId) => addon.disposeSequence(sequenceId),
    save: async (sequenceId) => {
      const checkpoint = new bindings.AddonContextSequenceCheckpoint()
      await checkpoint.init(addon, sequenceId)
      const saved: SavedAddonState = {
        checkpoint,
        sizeBytes: checkpoint.size,
        dispose: () => checkpoint.dispose(),
      }
      return saved
    },
    restore: (saved, length) => addon.restoreCheckpoint((saved as SavedAddonState).checkpoint, length - 1),
  }
}

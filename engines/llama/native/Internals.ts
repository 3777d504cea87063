// The only file that uses node-llama-cpp's undocumented internals: the spellings of tokens, the template renderer, and a model that has only
// a vocabulary. The names are the library's own. Its version is pinned, and a model is not loaded if one of them is missing.
import { GgufInsights, type Llama, LlamaModel, readGgufFileInfo } from "node-llama-cpp"

interface AddonModel {
  readonly getTokenString: (token: number) => string | undefined
  readonly getTokenAttributes: (token: number) => number
}

interface AddonModelStart {
  readonly init: () => Promise<boolean>
}

interface AddonJinja {
  readonly render: (variables: Record<string, unknown>) => string
}

interface Bindings {
  readonly AddonJinjaRenderer: new (template: string) => AddonJinja
}

/** What LoadedGguf reads of each token. */
interface NativeModel {
  readonly spelled: (token: number) => string
  readonly attributes: (token: number) => number
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
    ["getTokenString", "getTokenAttributes"],
    "model",
  )

const bindingsOf = (llama: Llama): Bindings =>
  checked<Bindings>(
    (llama as unknown as { readonly _bindings: unknown })._bindings,
    ["AddonJinjaRenderer"],
    "bindings",
  )

/** llama.cpp's own Jinja: renders the same text as llama.cpp's server. */
export const nativeJinja = (llama: Llama) => (template: string) => {
  const renderer = new (bindingsOf(llama).AddonJinjaRenderer)(template)
  return (variables: Record<string, unknown>): string => renderer.render(variables)
}

/** As in the library: what its `loadModel` gives to a model, in the order of its own code. */
type MakeModel = new (options: object, internals: object) => LlamaModel

/** What a GGUF file says of its model, without its weights. */
type FileInfo = Awaited<ReturnType<typeof readGgufFileInfo>>

export const fileInfoOf = (path: string): Promise<FileInfo> =>
  readGgufFileInfo(path, { sourceType: "filesystem", logWarnings: false })

/**
 * A model that has only the vocabulary of a file, for the processor. The library's `loadModel` first loads the file a second time to
 * estimate its memory: the vocabulary is read once more, 0.4 s of a core for 151,936 tokens (measured), and nothing uses the estimate here.
 */
export const vocabularyModel = async (llama: Llama, path: string, info: FileInfo): Promise<LlamaModel> => {
  const insights = await GgufInsights.from(info, llama)
  const Made = LlamaModel as unknown as MakeModel
  const model = new Made(
    { modelPath: path, gpuLayers: 0, vocabOnly: true, useMmap: llama.supportsMmap },
    {
      _llama: llama,
      _fileInfo: info,
      _fileInsights: insights,
      _defaultContextFlashAttentionOptionEnabled: false,
      _flashAttentionSupported: false,
      _loadPercentageShift: 0,
      _loadPercentageMultiplier: 1,
    },
  )
  const { init } = checked<AddonModelStart>(
    (model as unknown as { readonly _model: unknown })._model,
    ["init"],
    "model",
  )
  if (await init.call((model as unknown as { readonly _model: unknown })._model)) return model
  await model.dispose()
  throw new Error("Failed to load model")
}

export const nativeModel = (model: LlamaModel): NativeModel => {
  const addon = internals(model)
  return {
    spelled: (token) => addon.getTokenString(token) ?? "",
    attributes: addon.getTokenAttributes.bind(addon),
  }
}

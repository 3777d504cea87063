// The only file that uses node-llama-cpp's undocumented internals: the spellings of tokens and the template renderer. The names are
// the library's own. Its version is pinned, and a model is not loaded if one of them is missing.
import type { Llama, LlamaModel } from "node-llama-cpp"

interface AddonModel {
  readonly getTokenString: (token: number) => string | undefined
  readonly getTokenAttributes: (token: number) => number
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

export const nativeModel = (model: LlamaModel): NativeModel => {
  const addon = internals(model)
  return {
    spelled: (token) => addon.getTokenString(token) ?? "",
    attributes: addon.getTokenAttributes.bind(addon),
  }
}

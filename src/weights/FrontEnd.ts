// Whether the npm packages are installed with which a speech model reads text. An operator may leave some out, because they contain
// GPL code, and adds others (`edgewise setup`); a language whose package is absent is refused.
import { findPackageJSON } from "node:module"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"

type Spoken = Pick<ModelEntry, "adapter" | "speech">

/** Of a speech model whose catalog entry names no languages. */
const defaultLanguages = ["en"]

/** Packages that `edgewise setup` installs, and what it calls them. */
const setups: Readonly<Record<string, string>> = {
  "lindera-wasm-nodejs-ipadic": "japanese",
  "pinyin-pro": "chinese",
}

const known = new Map<string, boolean>()

/**
 * Looks for the package and not for its entries, because bin/trim.js deletes the one for CommonJS, which nothing loads.
 * @param from a file: where modules of its imports are sought
 */
export const isInstalled = (name: string, from: string = import.meta.url): boolean => {
  try {
    return findPackageJSON(name, from) !== undefined
  } catch {
    return false
  }
}

const isInstalledHere = (name: string): boolean => {
  const found = known.get(name) ?? isInstalled(name)
  known.set(name, found)
  return found
}

/** The package that the model needs for this language and that is not installed, if any. */
export const missingFrontEnd = (
  { adapter }: Pick<Spoken, "adapter">,
  language: string,
  has: (name: string) => boolean = isInstalledHere,
): string | undefined => {
  const { frontEnd } = adapterFacts[adapter] ?? {}
  const name = frontEnd?.[language] ?? frontEnd?.others
  return name === undefined || has(name) ? undefined : name
}

/** What the model cannot speak for want of a package. Undefined if it lacks nothing. */
export const frontEndLack = (
  entry: Spoken,
  has: (name: string) => boolean = isInstalledHere,
): { readonly all: boolean; readonly problem: string } | undefined => {
  const languages = entry.speech?.languages ?? defaultLanguages
  const lacks = languages.flatMap((language) => {
    const name = missingFrontEnd(entry, language, has)
    return name === undefined ? [] : [{ language, name }]
  })
  const names = [...new Set(lacks.map(({ name }) => name))]
  if (names.length === 0) return undefined
  const spoken = lacks.map(({ language }) => language).join(", ")
  const packages =
    names.length === 1 ? `npm package ${names[0]} is` : `npm packages ${names.join(" and ")} are`
  const commands = names.flatMap((name) => (name in setups ? [`edgewise setup ${setups[name]}`] : []))
  const hint = commands.length === 0 ? "" : `; run ${commands.join(" and ")}`
  return {
    all: lacks.length === languages.length,
    problem: `it cannot speak ${spoken}: the ${packages} not installed${hint}`,
  }
}

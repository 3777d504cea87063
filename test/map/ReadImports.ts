// Which folders the sources are in and which they import, read from the files.
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import packageJson from "../../package.json" with { type: "json" }

export const root = fileURLToPath(new URL("../..", import.meta.url))

/** Paths of all TypeScript and JavaScript files in a folder and the folders below it. */
export const scriptsIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") || name.endsWith(".js"))
    .map((name) => join(folder, name))

/** Paths of all source files of the product, from the repository's root: TypeScript, and the playground's JavaScript. */
export const sourceFiles = (): ReadonlyArray<string> =>
  ["src", "actors", "engines", "bench/harness"]
    .flatMap(scriptsIn)
    .filter((path) => !/^(?:engines\/grammar|src\/web\/voice)\/test\//.test(path))

/** Paths of the folders directly in a folder. */
export const foldersIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`)

export const textOf = (path: string): string => readFileSync(join(root, path), "utf8")

/** What a file imports, as written. */
export const specifiersOf = (path: string): ReadonlyArray<string> =>
  [...textOf(path).matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].flatMap(([, target]) => target ?? [])

const aliases: ReadonlyArray<readonly [string, string]> = Object.entries(packageJson.imports).map(
  ([name, target]) => [name.slice(0, -1), target.slice(2, -1)],
)

/** The repository path an import leads to; undefined for a package. */
export const targetOf = (path: string, specifier: string): string | undefined => {
  if (specifier.startsWith(".")) return relative(root, resolve(root, dirname(path), specifier))
  const alias = aliases.find(([name]) => specifier.startsWith(name))
  return alias === undefined ? undefined : alias[1] + specifier.slice(alias[0].length)
}

/** One import of a file. */
export interface Arrow {
  readonly path: string
  readonly target: string
}

/** All imports of other source files, of types as well. */
export const importsOf = (paths: ReadonlyArray<string>): ReadonlyArray<Arrow> =>
  paths.flatMap((path) =>
    specifiersOf(path).flatMap((specifier) => {
      const target = targetOf(path, specifier)
      return target === undefined || !/\.[jt]s$/.test(target) ? [] : [{ path, target }]
    }),
  )

/** The imports that leave their folder; package.json is no folder's. */
export const arrowsOf = (imports: ReadonlyArray<Arrow>): ReadonlyArray<Arrow> =>
  imports.filter(({ path, target }) => dirname(target) !== dirname(path))

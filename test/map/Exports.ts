// Which names files export, and which of them another file imports, read from their text: they are formatted by one tool, so
// expressions find both.
import { targetOf, textOf } from "./ReadImports.ts"

/** The names of a list between braces: `type A as B, c` gives those before `as`, or those after it. */
const namesIn = (list: string, after: boolean): ReadonlyArray<string> =>
  list
    .split(",")
    .map((part) => part.trim().replace(/^type /, ""))
    .filter((part) => part !== "")
    .map((part) => part.split(" as ").at(after ? -1 : 0)!)

/** Names that a text exports. A default export has no name. */
export const exportsOf = (text: string): ReadonlyArray<string> => [
  ...[
    ...text.matchAll(/^export (?:abstract |async )?(?:class|const|function\*?|interface|let|type) (\w+)/gm),
  ].map(([, name = ""]) => name),
  ...[...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = ""]) => namesIn(list, true)),
]

interface Use {
  readonly specifier: string
  /** `*` for all of them. */
  readonly name: string
}

/** Names that a text imports, and those that it exports from another file. */
export const importedBy = (text: string): ReadonlyArray<Use> => [
  ...[...text.matchAll(/^(?:import|export) (?:type )?\{([^}]*)\} from "([^"]+)"/gm)].flatMap(
    ([, list = "", specifier = ""]) => namesIn(list, false).map((name) => ({ specifier, name })),
  ),
  ...[...text.matchAll(/^import (?:type )?\* as (\w+) from "([^"]+)"/gm)].flatMap(
    ([, alias = "", specifier = ""]) =>
      // An alias that is passed on as a whole brings all names.
      [...text.matchAll(new RegExp(`(?<!as )\\b${alias}\\b(?:\\.(\\w+))?`, "g"))].map(([, name = "*"]) => ({
        specifier,
        name,
      })),
  ),
  ...[...text.matchAll(/^export (?:type )?\* from "([^"]+)"/gm)].map(([, specifier = ""]) => ({
    specifier,
    name: "*",
  })),
  ...[...text.matchAll(/import\(\s*"([^"]+)"/g)].map(([, specifier = ""]) => ({ specifier, name: "*" })),
]

/** Exports of files that none of the other files imports, as "path: name". */
export const unimported = (paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  const texts = new Map(paths.map((path) => [path, textOf(path)]))
  const used = new Set(
    [...texts].flatMap(([path, text]) =>
      importedBy(text).map(({ name, specifier }) => `${targetOf(path, specifier)}: ${name}`),
    ),
  )
  return [...texts].flatMap(([path, text]) =>
    used.has(`${path}: *`)
      ? []
      : exportsOf(text)
          .map((name) => `${path}: ${name}`)
          .filter((found) => !used.has(found)),
  )
}

// A module of the sources with a change in it: a defect that tests must notice.
import { readFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"

/** What is changed, and into what. */
export type Mutation = readonly [from: string, to: string]

/** `path`: from the folder of the sources. `imports`: the values that the module imports. */
export const mutant = <M>(path: string, imports: Readonly<Record<string, unknown>>) => {
  const file = readFileSync(new URL(`../../../src/${path}`, import.meta.url), "utf8")
  const source = stripTypeScriptTypes(file).replace(/^import [\s\S]*? from ".*"$/gm, "")
  return ([from, to]: Mutation): M => {
    const code = source.replace(from, () => to)
    if (code === source) throw new Error(`nothing is changed: ${from}`)
    const exported = [...code.matchAll(/^export (?:const|class) (\w+)/gm)].map(([, name]) => name)
    const body = `${code.replace(/^export /gm, "")}\nreturn { ${exported.join(", ")} }`
    return new Function(...Object.keys(imports), body)(...Object.values(imports)) as M
  }
}

// A module of the sources with a change in it: a defect that tests must notice.
import { readFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"

/** What is changed, and into what. */
export type Mutation = readonly [from: string, to: string]

/** `path`: from the folder of the sources. `imports`: the values that the module imports. Without a change: the module as it is. */
export const mutant = <M>(path: string, imports: Readonly<Record<string, unknown>>) => {
  const file = readFileSync(new URL(`../../../src/${path}`, import.meta.url), "utf8")
  const source = stripTypeScriptTypes(file).replace(/^import [\s\S]*? from ".*"$/gm, "")
  return (change?: Mutation): M => {
    const code = change === undefined ? source : source.replace(change[0], () => change[1])
    if (change !== undefined && code === source) throw new Error(`nothing is changed: ${change[0]}`)
    const exported = [...code.matchAll(/^export (?:const|class) (\w+)/gm)].map(([, name]) => name)
    const body = `${code.replace(/^export /gm, "")}\nreturn { ${exported.join(", ")} }`
    return new Function(...Object.keys(imports), body)(...Object.values(imports)) as M
  }
}

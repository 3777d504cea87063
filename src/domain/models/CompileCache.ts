// Where this node's child processes keep what V8 has compiled of their modules, so that the next one need not compile
// it again. Set by the node (store/CompileCache makes the folder), read by whoever starts a process: engines, decoders.
import { Context } from "effect"

/** Absolute path of the folder; undefined where nothing is kept, or not at present. Asked at every start. */
export const CompileCache = Context.Reference<() => string | undefined>("edgewise/domain/CompileCache", {
  defaultValue: () => () => undefined,
})

/** Node's own variable. What it cannot read, or was compiled by another version, it compiles; what it cannot write, it forgets. */
export const compiledCodeEnvironment = (folder: string | undefined): Readonly<Record<string, string>> =>
  folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }

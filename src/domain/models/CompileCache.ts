// The folder in which child processes (engines, decoders) keep compiled code, so that the next process need not compile
// it again. The node sets it (store/files/CompileCacheFolder).
import { Context } from "effect"

/** Absolute path of the folder. Undefined if the cache is off, or off at present. Read at each start of a process. */
export const CompileCache = Context.Reference<() => string | undefined>("edgewise/domain/CompileCache", {
  defaultValue: () => () => undefined,
})

/**
 * Node's own variable. Node recompiles entries that it cannot read or that another version made, and ignores write
 * errors.
 */
export const compiledCodeEnvironment = (folder: string | undefined): Readonly<Record<string, string>> =>
  folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }

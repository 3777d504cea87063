// koffi, which calls functions of native libraries, with stacks large enough for llama.cpp. It refuses to be configured once a library of
// the process is loaded, so every file that loads one imports koffi from here (test/ImportRule.test.ts).
import koffi, { type TypeObject } from "koffi"

/**
 * Bytes of a call's stack. More than any call was seen to use: loading a model and building a graph need more than koffi's 128 KiB of an
 * asynchronous call. Only the pages that are used become resident.
 */
const callStack = 8 * 1024 * 1024

// Tests may load this file twice in a process.
if (koffi.config().sync_stack_size !== callStack)
  koffi.config({ async_stack_size: callStack, sync_stack_size: callStack, resident_async_pools: 2 })

/** A C type as koffi describes it. */
export type NativeType = string | TypeObject

export { koffi }

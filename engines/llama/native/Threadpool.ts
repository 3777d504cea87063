// A pool of threads for a context. Without one, a context starts new threads for every evaluation, and a step of 10 ms on
// two threads took 16 to 27 ms (0.2 billion parameters, measured). Uses ggml's C interface in the CPU library that is
// loaded already.
import { koffi } from "./Koffi.ts"
import { type Pointer, UnknownRelease } from "./Libllama.ts"
import { isNativeObject } from "./NativeObjects.ts"

/** `struct ggml_threadpool_params` of ggml.h, bytes: a mask of 512 cores, then the fields, padded to 4. */
const layout = { threads: 512, priority: 516, poll: 520, strict: 524, paused: 525, size: 528 }

/** ggml's own defaults, by which its release is recognised. */
const defaults = { priority: 0, poll: 50, strict: 0, paused: 0 }

/** Idle threads sleep at once: a model without requests must not keep a core busy. */
const sleepAtOnce = 0

interface Threadpool {
  readonly pool: Pointer
  readonly free: () => void
}

/** `objects`: paths of the loaded libraries. Undefined if the CPU library is not among them. */
export const makeThreadpool = (objects: ReadonlyArray<string>, threads: number): Threadpool | undefined => {
  const base = objects.find((path) => isNativeObject(path, "ggml-base"))
  const processor = objects.find((path) => isNativeObject(path, "ggml-cpu"))
  if (base === undefined || processor === undefined) return undefined
  const parameters = new Uint8Array(new ArrayBuffer(layout.size)).fill(0xff)
  const initialise = koffi.load(base).func("ggml_threadpool_params_init", "void", ["void *", "int"])
  initialise(parameters, threads)
  const view = new DataView(parameters.buffer)
  if (
    view.getInt32(layout.threads, true) !== threads ||
    view.getInt32(layout.priority, true) !== defaults.priority ||
    view.getUint32(layout.poll, true) !== defaults.poll ||
    view.getUint8(layout.strict) !== defaults.strict ||
    view.getUint8(layout.paused) !== defaults.paused
  )
    throw new UnknownRelease("ggml_threadpool_params of another release")
  view.setUint32(layout.poll, sleepAtOnce, true)
  const library = koffi.load(processor)
  const make = library.func("ggml_threadpool_new", "void *", ["void *"])
  const free = library.func("ggml_threadpool_free", "void", ["void *"])
  const pool = make(parameters) as Pointer | null
  return pool === null ? undefined : { pool, free: () => free(pool) }
}

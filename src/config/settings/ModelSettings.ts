// Settings of loaded models and their processes: memory, confinement, unloading, and the end of the node.
import { integer, type Setting, trueOrFalse } from "./Setting.ts"

export const modelSettings = {
  idleUnloadSeconds: {
    variable: "EDGEWISE_IDLE_UNLOAD_SECONDS",
    value: "SECONDS",
    help: "a model without a request for this long is unloaded until the next one; 0 keeps it",
    fallback: 0,
    ...integer(0, 31_536_000),
  },
  confine: {
    variable: "EDGEWISE_CONFINE",
    help: "confine engines and decoders as far as this machine can; false only to find out why an engine does not load",
    fallback: true,
    ...trueOrFalse,
  },
  evictIdle: {
    variable: "EDGEWISE_EVICT_IDLE",
    help: "unload idle models when another one needs their memory",
    fallback: false,
    ...trueOrFalse,
  },
  memoryMb: {
    variable: "EDGEWISE_MEMORY_MB",
    value: "MB",
    help: "memory that the node and its models may use; 0 means nine tenths of the machine's or container's",
    fallback: 0,
    ...integer(0, 100_000_000),
  },
  drainSeconds: {
    variable: "EDGEWISE_DRAIN_SECONDS",
    value: "SECONDS",
    help: "how long requests in flight may take to finish after SIGTERM",
    fallback: 10,
    ...integer(0, 3_600),
  },
} as const satisfies Record<string, Setting<unknown>>

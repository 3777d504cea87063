// Bodies and replies of the operators' endpoints (protocol 12). Schemas only.
import { Schema } from "effect"

export const LoadRequest = Schema.Struct({
  model_name: Schema.NonEmptyString,
  force_reload: Schema.optionalKey(Schema.Boolean),
})
export const UnloadRequest = Schema.Struct({ model_name: Schema.NonEmptyString })
export const PurgeRequest = Schema.Struct({ force: Schema.optionalKey(Schema.Boolean) })
export const PullRequest = Schema.Struct({ model_name: Schema.NonEmptyString })

const success = Schema.Literal("success")
/** `partial` where there are errors. */
const outcome = Schema.Literals(["success", "partial"])
const ids = Schema.Array(Schema.String)

export const LoadRecord = Schema.Struct({
  status: success,
  model: Schema.String,
  force_reload: Schema.Boolean,
  message: Schema.String,
})

export const UnloadRecord = Schema.Struct({ status: success, model: Schema.String, message: Schema.String })

export const UnloadAllRecord = Schema.Struct({
  status: outcome,
  unloaded_models: ids,
  errors: Schema.Array(Schema.String),
  total_unloaded: Schema.Int,
})

const usedMemory = { used_gb: Schema.Finite, total_gb: Schema.Finite, percent_used: Schema.Finite }
const MemoryUse = Schema.Struct(usedMemory)

export const GpuStatusRecord = Schema.Struct({
  status: success,
  timestamp: Schema.String,
  gpus: Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      name: Schema.String,
      memory: Schema.Struct({
        total_mb: Schema.Int,
        used_mb: Schema.Int,
        free_mb: Schema.Int,
        ...usedMemory,
        free_gb: Schema.Finite,
      }),
      utilization: Schema.Struct({ gpu_percent: Schema.Finite, memory_percent: Schema.Finite }),
      temperature_c: Schema.Finite,
    }),
  ),
  processes: Schema.Array(Schema.Struct({ pid: Schema.Int, name: Schema.String, memory_mb: Schema.Int })),
  total_gpus: Schema.Int,
})

export const GpuMemoryRecord = Schema.Struct({
  status: success,
  timestamp: Schema.String,
  memory: Schema.Array(Schema.Struct({ ...usedMemory, free_gb: Schema.Finite, percent_free: Schema.Finite })),
})

export const PurgeRecord = Schema.Struct({
  status: outcome,
  timestamp: Schema.String,
  actions: Schema.Array(Schema.String),
  memory_before: MemoryUse,
  memory_after: MemoryUse,
  memory_freed_gb: Schema.Finite,
  models_unloaded: ids,
  errors: Schema.Array(Schema.String),
  recommendation: Schema.String,
})

/** Events of a pull (protocol 12.4). */
export const PullEvent = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("progress"),
    file: Schema.String,
    received_bytes: Schema.Int,
    total_bytes: Schema.NullOr(Schema.Int),
  }),
  Schema.Struct({
    type: Schema.Literal("done"),
    model: Schema.String,
    files: Schema.Array(
      Schema.Struct({
        role: Schema.String,
        source: Schema.String,
        size_bytes: Schema.Int,
        sha256: Schema.String,
        checked_by: Schema.NullOr(Schema.String),
        fetched: Schema.Boolean,
      }),
    ),
  }),
  Schema.Struct({ type: Schema.Literal("error"), error: Schema.String }),
])

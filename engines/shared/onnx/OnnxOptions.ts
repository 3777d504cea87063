// The options of ONNX Runtime's sessions: which device, how many threads, how they wait, what is kept in memory.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { InferenceSession } from "onnxruntime-node"
import { type EngineError, type EngineSpec, loadFailed } from "../../protocol/Engine.ts"
import { executionProvider } from "./ExecutionProvider.ts"

// ONNX Runtime's published binaries (1.29 and later) by default report every session to their maker: name and hash of the
// model, the machine, a device id stored in the home directory. They read this variable before the first session.
process.env.ORT_DISABLE_TELEMETRY = "1"

export interface OnnxOptions {
  /** Intra-op threads, including the calling one; fixed while the session is open. */
  readonly threads: number
  /** True if a second session with half of the threads may be opened, for when others need the cores. */
  readonly narrows?: boolean
  /** Device of the graph. `cuda` needs files that the package does not contain: docs/operations.md. */
  readonly ep?: "cpu" | "cuda"
}

const decodeEp = Schema.decodeUnknownEffect(Schema.Struct(executionProvider))

/** The options of a model's sessions, from the catalog and the choice of threads. */
export const optionsOf = ({ options, threads, trial }: EngineSpec): Effect.Effect<OnnxOptions, EngineError> =>
  decodeEp(options).pipe(
    Effect.map(({ ep }) => ({ ep, threads, ...(trial?.narrows === true ? { narrows: true } : {}) })),
    Effect.mapError((error) => loadFailed("", `options: ${error.message}`)),
  )

/**
 * True if threads spin while they wait for the next operator of a call. ONNX Runtime's default also spins between calls:
 * two of them on two busy cores were 18 times slower than one. Spinning only within a call makes a window of Whisper base
 * 11 % faster on an idle machine, and 1.2 times slower beside another program that computes (measured). So a session spins
 * only within its calls, and only if a narrower one can replace it.
 */
export const spins = ({ ep, narrows = false, threads }: OnnxOptions): boolean =>
  narrows && threads > 1 && ep !== "cuda"

/**
 * Options of every session of the engines, and of the probe that measures them. `dataFolder`: folder of the weights, for a
 * graph that is not read from a file.
 */
export const sessionOptions = (
  options: OnnxOptions,
  dataFolder?: string,
): InferenceSession.SessionOptions => ({
  // No fallback: a model meant for a GPU would run on the CPU and merely seem slow.
  executionProviders: [options.ep ?? "cpu"],
  intraOpNumThreads: options.threads,
  interOpNumThreads: 1,
  // Keeps buffers for the next call. Without the arena each call of a large model allocates and frees hundreds of megabytes:
  // 630,000 page faults and 1,400 ms instead of 615 for a sentence of Kokoro 82 M, 84,000 faults and 780 ms instead of 640
  // for a window of Whisper base (measured). It holds the largest call's memory until the session is closed: 70 MB for that
  // sentence, 290 MB after sentences of all lengths.
  enableCpuMemArena: true,
  // The memory pattern would keep one block for each input length.
  enableMemPattern: false,
  graphOptimizationLevel: "all",
  logSeverityLevel: 3,
  extra: {
    session: {
      ...(spins(options)
        ? { force_spinning_stop: "1" }
        : { intra_op: { allow_spinning: "0" }, inter_op: { allow_spinning: "0" } }),
      ...(dataFolder === undefined ? {} : { model_external_initializers_file_folder_path: dataFolder }),
    },
  },
})

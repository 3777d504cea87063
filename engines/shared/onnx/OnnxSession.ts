// One ONNX Runtime session in a Scope: how a graph file is opened and how it is called.
// Called by every engine that runs ONNX graphs; it knows nothing of models, requests or audio.
//
// `session.run` blocks the thread for as long as the graph computes and can't be cancelled, so callers keep a
// single call short and look for interruption between calls.
import { basename, dirname } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { InferenceSession, type Tensor } from "onnxruntime-node"
import { EngineError, type EngineSpec } from "../../protocol/Engine.ts"
import { executionProvider } from "./ExecutionProvider.ts"
import { type Create, type NativeRun, release, spins, withSecond } from "./SecondSession.ts"

// ONNX Runtime's published binaries (1.29 and later) otherwise tell their maker about every session: name and hash of the
// model, the machine, a device id that they keep in the home directory. They look for this before the first session.
process.env.ORT_DISABLE_TELEMETRY = "1"

/** One declared input or output. Symbolic dimensions are strings (`"batch_size"`), fixed ones numbers. */
export interface TensorInfo {
  readonly name: string
  readonly type: Tensor.Type
  readonly shape: ReadonlyArray<number | string>
}

export type Feeds = Readonly<Record<string, Tensor>>
export type Fetched = Readonly<Record<string, Tensor>>

export interface OnnxSession {
  /** File name without its folder, for messages and logs. */
  readonly file: string
  /** By name, in the graph's order. */
  readonly inputs: ReadonlyMap<string, TensorInfo>
  readonly outputs: ReadonlyMap<string, TensorInfo>
  /**
   * One native call. Not interruptible: an interruption that arrives meanwhile takes effect when it returns.
   * `fetches` limits the outputs that are copied back; by default all are.
   */
  readonly run: (feeds: Feeds, fetches?: ReadonlyArray<string>) => Effect.Effect<Fetched, EngineError>
}

export interface OnnxOptions {
  /** Intra-op threads, the calling one included; fixed for as long as the session is open. */
  readonly threads: number
  /** Whether a second session may be opened beside it, with half of the threads, for when others need the cores. */
  readonly narrows?: boolean
  /** Where the graph is computed. `cuda` needs files that the package does not bring: docs/operations.md. */
  readonly ep?: "cpu" | "cuda"
}

const decodeEp = Schema.decodeUnknownEffect(Schema.Struct(executionProvider))

/** What the catalog and the choice of threads say about a model's sessions. */
export const optionsOf = ({ options, threads, trial }: EngineSpec): Effect.Effect<OnnxOptions, EngineError> =>
  decodeEp(options).pipe(
    Effect.map(({ ep }) => ({ ep, threads, ...(trial?.narrows === true ? { narrows: true } : {}) })),
    Effect.mapError(
      (error) => new EngineError({ reason: "LoadFailed", field: "", detail: `options: ${error.message}` }),
    ),
  )

const cudaHint = "(CUDA needs files that the package does not bring: docs/operations.md)"

const loadFailed = (path: string, cause: unknown): EngineError =>
  new EngineError({
    reason: "LoadFailed",
    field: "",
    detail: `${basename(path)}: ${messageOf(cause).replaceAll(path, basename(path))}`,
  })

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message.trim() : String(cause))

/**
 * Of every session of the engines, and of the probe that measures them. `dataFolder`: where the weights of a graph lie
 * that does not come from a file.
 */
export const sessionOptions = (
  options: OnnxOptions,
  dataFolder?: string,
): InferenceSession.SessionOptions => ({
  // No second choice: a model that was to run on a GPU and runs on the processor instead would look merely slow.
  executionProviders: [options.ep ?? "cpu"],
  intraOpNumThreads: options.threads,
  interOpNumThreads: 1,
  // Buffers of one call serve the next. Without the arena each call of a large model takes hundreds of megabytes from the
  // system and gives them back: 630,000 page faults and 1,400 ms instead of 615 for a sentence of Kokoro 82 M, 84,000 faults
  // and 780 ms instead of 640 for a window of Whisper base (measured). It holds the largest call's memory until the session
  // is closed: 70 MB for that sentence, 290 MB after sentences of all lengths.
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

/** Opens the graph at `path` (external data files beside it are found by ONNX Runtime) until the scope closes. */
export const open = (
  path: string,
  options: OnnxOptions,
): Effect.Effect<OnnxSession, EngineError, Scope.Scope> =>
  opened(path, options, (wanted) => InferenceSession.create(path, sessionOptions(wanted)))

/** The same for a changed graph of that file (GraphEdit), whose weights lie beside it. */
export const openEdited = (
  path: string,
  graph: Uint8Array,
  options: OnnxOptions,
): Effect.Effect<OnnxSession, EngineError, Scope.Scope> =>
  opened(path, options, (wanted) => InferenceSession.create(graph, sessionOptions(wanted, dirname(path))))

const opened = (
  path: string,
  options: OnnxOptions,
  create: Create,
): Effect.Effect<OnnxSession, EngineError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => create(options),
      catch: (cause) => loadFailed(path, options.ep === "cuda" ? `${messageOf(cause)} ${cudaHint}` : cause),
    }),
    (session) => Effect.promise(() => release(session)),
  ).pipe(
    Effect.flatMap((session) =>
      Effect.map(withSecond(session, create, options), (run) => fromNative(basename(path), session, run)),
    ),
  )

const fromNative = (file: string, session: InferenceSession, run: NativeRun): OnnxSession => ({
  file,
  inputs: tensorInfos(session.inputMetadata),
  outputs: tensorInfos(session.outputMetadata),
  run: (feeds, fetches) =>
    Effect.uninterruptible(
      Effect.tryPromise({
        try: () => run(feeds, fetches),
        catch: (cause) =>
          new EngineError({ reason: "Failed", field: "", detail: `${file}: ${messageOf(cause)}` }),
      }),
    ) as Effect.Effect<Fetched, EngineError>,
})

const tensorInfos = (
  metadata: ReadonlyArray<InferenceSession.ValueMetadata>,
): ReadonlyMap<string, TensorInfo> => {
  const infos = new Map<string, TensorInfo>()
  for (const value of metadata) {
    if (value.isTensor) infos.set(value.name, { name: value.name, type: value.type, shape: value.shape })
  }
  return infos
}

/** The first of `names` that the graph declares as an input; `LoadFailed` names what was looked for. */
export const inputNamed = (
  session: OnnxSession,
  names: ReadonlyArray<string>,
): Effect.Effect<TensorInfo, EngineError> => named(session, "input", session.inputs, names)

/** As `inputNamed`, for outputs. */
export const outputNamed = (
  session: OnnxSession,
  names: ReadonlyArray<string>,
): Effect.Effect<TensorInfo, EngineError> => named(session, "output", session.outputs, names)

const named = (
  session: OnnxSession,
  side: "input" | "output",
  infos: ReadonlyMap<string, TensorInfo>,
  names: ReadonlyArray<string>,
): Effect.Effect<TensorInfo, EngineError> => {
  for (const name of names) {
    const info = infos.get(name)
    if (info !== undefined) return Effect.succeed(info)
  }
  const declared = [...infos.keys()].join(", ")
  return Effect.fail(
    loadFailed(session.file, `has no ${side} named ${names.join(" or ")}; it declares ${declared}`),
  )
}

// One ONNX Runtime session in a Scope: opens a graph file and calls it. Knows no models, requests or audio.
//
// `session.run` blocks the thread as long as the graph computes and cannot be cancelled, so callers keep a
// single call short and check for interruption between calls.
import { basename, dirname } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { InferenceSession, type Tensor } from "onnxruntime-node"
import { callFailed, type EngineError, type EngineSpec, loadFailed } from "../../protocol/Engine.ts"
import { fileOf } from "../files/EngineSpecFiles.ts"
import { type OnnxOptions, sessionOptions } from "./OnnxOptions.ts"
import { type Create, type NativeRun, release, withSecond } from "./SecondSession.ts"
import type { Feeds, Fetched } from "./Tensors.ts"

/** One declared input or output. Symbolic dimensions are strings (`"batch_size"`), fixed ones numbers. */
export interface TensorInfo {
  readonly name: string
  readonly type: Tensor.Type
  readonly shape: ReadonlyArray<number | string>
}

export interface OnnxSession {
  /** File name without its folder, for messages and logs. */
  readonly file: string
  /** By name, in the graph's order. */
  readonly inputs: ReadonlyMap<string, TensorInfo>
  readonly outputs: ReadonlyMap<string, TensorInfo>
  /**
   * One native call. Not interruptible: an interruption takes effect when the call returns.
   * `fetches` limits the outputs that are copied back; default: all.
   */
  readonly run: (feeds: Feeds, fetches?: ReadonlyArray<string>) => Effect.Effect<Fetched, EngineError>
}

const cudaHint = "(CUDA needs files that the package does not bring: docs/operations.md)"

const graphFailed = (path: string, cause: unknown): EngineError =>
  loadFailed("", `${basename(path)}: ${messageOf(cause).replaceAll(path, basename(path))}`)

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message.trim() : String(cause))

/** Opens the graph at `path` until the scope closes. ONNX Runtime finds external data files beside it. */
export const open = (
  path: string,
  options: OnnxOptions,
): Effect.Effect<OnnxSession, EngineError, Scope.Scope> =>
  opened(path, options, (wanted) => InferenceSession.create(path, sessionOptions(wanted)))

/** Opens the graph of a role of the catalog entry. */
export const openRole = (
  spec: EngineSpec,
  role: string,
  options: OnnxOptions,
): Effect.Effect<OnnxSession, EngineError, Scope.Scope> =>
  Effect.flatMap(fileOf(spec, role), (path) => open(path, options))

/** Opens an edited graph (GraphEdit) of the file at `path`, whose weights are beside it. */
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
      catch: (cause) => graphFailed(path, options.ep === "cuda" ? `${messageOf(cause)} ${cudaHint}` : cause),
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
        catch: (cause) => callFailed(`${file}: ${messageOf(cause)}`),
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

/** The first of `names` that the graph declares as an input. `LoadFailed` lists the names. */
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
    graphFailed(session.file, `has no ${side} named ${names.join(" or ")}; it declares ${declared}`),
  )
}

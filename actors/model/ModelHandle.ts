// A deployed model of one kind, as services use it: typed requests and facts, without the engine behind them.
import type { Effect } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { InvalidRequest, type ModelNotLoaded } from "#domain/wire/Errors.ts"
import type { EngineKind, Facts } from "#engines/protocol/Verbs.ts"
import type { Run, RunError, RunOptions } from "../engine/EngineRequest.ts"
import type { AnyModel, LoadError, Model } from "./Model.ts"

/** Options of a request besides those of the engine. */
export interface ModelRunOptions<K extends EngineKind> extends RunOptions {
  /** The model that earlier requests of the same work ran on, see Model.hold. Absent: the model that has the id now. */
  readonly on?: Model<K>
}

export interface ModelHandle<K extends EngineKind> {
  /** The catalog entry when the model was found. */
  readonly entry: ModelEntry
  /** The model that has the id now; undefined if a reload has removed it. */
  readonly current: () => Model<K> | undefined
  /** Facts of the engine of that model, once it has loaded. */
  readonly facts: () => Facts<K> | undefined
  /** The same, of a model that is loaded first if it is not. */
  readonly loaded: Effect.Effect<Facts<K>, LoadError | ModelNotLoaded>
  /** Whether other requests need the engine: then a long request should be short and repeated. */
  readonly isContended: (user: string) => boolean
  /** Runs on the model that has the id when the request starts; a reload may have replaced it since it was found. */
  readonly run: Run<K, RunError | ModelNotLoaded, ModelRunOptions<K>>
}

/** The model if it is of the kind. */
export const ofKind: { readonly [K in EngineKind]: (model: AnyModel) => Model<K> | undefined } = {
  text: (model) => (model.kind === "text" ? model : undefined),
  speech: (model) => (model.kind === "speech" ? model : undefined),
  transcription: (model) => (model.kind === "transcription" ? model : undefined),
  embedding: (model) => (model.kind === "embedding" ? model : undefined),
  detection: (model) => (model.kind === "detection" ? model : undefined),
}

const lacks: Readonly<Record<EngineKind, string>> = {
  text: "does not generate text",
  speech: "does not speak",
  transcription: "does not transcribe",
  embedding: "makes no embeddings",
  detection: "detects neither speech nor the ends of turns",
}

/** The refusal of a model that exists and is of another kind; `name` is the caller's word for it. */
export const wrongKind = (name: string, kind: EngineKind): InvalidRequest =>
  new InvalidRequest({ field: "model", problem: `${name} ${lacks[kind]}` })

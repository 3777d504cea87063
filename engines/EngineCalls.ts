// What an EngineServer calls of an engine of each kind, and how it reports an error of it.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import {
  callFailed,
  type Engine,
  type EngineError,
  type EngineThreads,
  type GenerateCall,
  type GenerateRequest,
  invalidInput,
  type Outlet,
  type TranscribeCall,
  type TranscribeRequest,
} from "./protocol/Engine.ts"
import type { WireError } from "./protocol/EngineProtocol.ts"
import type { End, EngineKind, Request } from "./protocol/Verbs.ts"
import { readPixels, readSpan } from "./shared/files/RequestFiles.ts"

export const failed = (detail: string): WireError => ({ reason: "Failed", field: "", detail })

export const toWireError = (cause: Cause.Cause<EngineError>): WireError => {
  const failure = cause.reasons.find(Cause.isFailReason)?.error
  if (failure !== undefined) {
    return {
      reason: failure.reason,
      field: failure.field,
      detail: failure.detail,
      ...(failure.promptTokens === undefined ? {} : { promptTokens: failure.promptTokens }),
      ...(failure.contextTokens === undefined ? {} : { contextTokens: failure.contextTokens }),
      ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }),
    }
  }
  if (Cause.hasInterruptsOnly(cause)) return { reason: "Cancelled", field: "", detail: "" }
  const defect = Cause.squash(cause)
  return failed(defect instanceof Error ? defect.message : String(defect))
}

const withSamples = ({ samples, ...rest }: TranscribeCall): Effect.Effect<TranscribeRequest, EngineError> =>
  samples instanceof Float32Array
    ? Effect.succeed({ ...rest, samples })
    : Effect.try({
        try: () => ({ ...rest, samples: readSpan(samples) }),
        catch: () => callFailed("the audio could not be read"),
      })

const noTranslation = invalidInput("model", "this model does not translate")

const noPicture = callFailed("a picture could not be read")

const hasNoPictures = (request: GenerateCall): request is GenerateRequest => request.pictures === undefined

const withPixels = (request: GenerateCall): Effect.Effect<GenerateRequest, EngineError> => {
  // Most requests.
  if (hasNoPictures(request)) return Effect.succeed(request)
  const { pictures = [], ...rest } = request
  return Effect.tryPromise({
    try: async () => ({ ...rest, pictures: await Promise.all(pictures.map(readPixels)) }),
    catch: () => noPicture,
  })
}

/** The kind of an engine with the facts of that kind; of the engine itself nothing can be sent. */
export const kindAndFacts = (engine: Engine) => {
  switch (engine.kind) {
    case "text":
      return { kind: engine.kind, facts: engine.facts }
    case "speech":
      return { kind: engine.kind, facts: engine.facts }
    case "transcription":
      return { kind: engine.kind, facts: engine.facts }
    case "embedding":
      return { kind: engine.kind, facts: engine.facts }
    case "detection":
      return { kind: engine.kind, facts: engine.facts }
  }
}

/** Threads that can change while it runs; undefined for engines with a fixed number. */
export const threadsOf = (engine: Engine): EngineThreads | undefined =>
  engine.kind === "text" || engine.kind === "embedding" ? engine.threads : undefined

export type Call<K extends EngineKind> = (
  engine: Engine<K>,
  request: Request<K>,
  out: Outlet<K>,
) => Effect.Effect<End<K>, EngineError>

/** The verb of each kind. */
export const calls: { readonly [K in EngineKind]: Call<K> } = {
  text: (engine, request, out) => Effect.flatMap(withPixels(request), (input) => engine.generate(input, out)),
  speech: (engine, request, out) => engine.synthesize(request, out),
  transcription: (engine, request, out) =>
    request.translate === true && engine.facts.translates !== true
      ? Effect.fail(noTranslation)
      : Effect.flatMap(withSamples(request), (input) => engine.transcribe(input, out)),
  embedding: (engine, request, out) => engine.embed(request, out),
  detection: (engine, request, out) => engine.detect(request, out),
}

// The calls of live sessions to the engines: in the turns of each engine, measured, and captions from the model that the
// catalog names as a draft where there is one. Used by LiveSessions; one queue a model that was ever used live.
import { Clock, Effect, type Scope } from "effect"
import { punctuationProblem } from "#domain/language/Punctuated.ts"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { EngineFailed, InvalidRequest } from "#domain/wire/Errors.ts"
import type {
  Segment,
  TranscribeEnd,
  TranscribeRequest,
  TranscribeStarted,
  TranscriptionEngine,
} from "#engines/protocol/Engine.ts"
import type { Model } from "../model/Model.ts"
import type { ModelRegistry } from "../model/ModelRegistry.ts"
import { EngineLoad } from "./EngineLoad.ts"
import type { LiveCall, Transcribe } from "./IncrementalTranscriber.ts"
import type { Captioner } from "./LiveCaptions.ts"
import type { EngineUse, LiveError, LiveRequest } from "./LiveSessions.ts"

export type Facts = TranscriptionEngine["facts"]

/** One call at work and one on its way: the engine never waits for a message to cross. */
const pipelined = 2
/** For calls so long that a message's way is nothing beside them: a second one would only slow the first. */
const alone = 1

export interface ModelQueue {
  readonly load: EngineLoad
  readonly calls: DeadlineQueue
}

/** A loaded model and its queue. */
export interface Served {
  readonly model: Model
  readonly facts: Facts
  readonly queue: ModelQueue
}

export type Spent = { -readonly [K in keyof EngineUse]: EngineUse[K] }

/** A caption longer than this has the engine to itself, milliseconds: a message's way takes a fraction of one. A guess. */
const longCallMs = 100

/** Longest audio of one caption of a draft that does not say, seconds. As the engines that do. */
const assumedCaptionSeconds = 8

/** Loads the model, and refuses a language that it does not know, for the price of a message. */
const noAudio = (request: LiveRequest): TranscribeRequest => ({
  samples: new Float32Array(0),
  // A guess where none is named: a model that detects it would have to transcribe something.
  language: request.language ?? "en",
  prompt: "",
  previousTokens: [],
  temperature: 0,
  punctuation: undefined,
  words: false,
  last: true,
})

/** Undefined where captions and the closing of pieces are counted together. */
const seedOf = ({ captions, closedSeconds, windowSeconds }: Facts, hasDraft: boolean) => {
  if (captions === undefined && !hasDraft) return undefined
  return { captionMs: 0, windowMs: 0, ...captions, closedSeconds: closedSeconds ?? windowSeconds }
}

export const isBusy = (error: LiveError): boolean => error._tag === "AtCapacity"

export const makeModelQueues = (registry: ModelRegistry["Service"]) => {
  const queues = new Map<string, ModelQueue>()

  const queueOf = (model: Model, facts: Facts): ModelQueue => {
    const { id, transcription } = model.view().entry
    const known = queues.get(id)
    if (known !== undefined) return known
    const seed = seedOf(facts, transcription?.draft !== undefined)
    const queue = { load: new EngineLoad(seed), calls: new DeadlineQueue() }
    queues.set(id, queue)
    return queue
  }

  const factsOf = (model: Model) => model.view().host?.facts as Facts | undefined

  const run = (model: Model, request: TranscribeRequest, onSegment: (segment: Segment) => void) =>
    registry.run<TranscribeStarted, Segment, TranscribeEnd>(
      model.view().entry.id,
      request,
      { started: () => {}, unit: onSegment },
      // Sessions have a queue of their own, by deadline.
      { urgency: "live", continues: true, on: model },
    )

  /** Loads the model where it is not, and refuses a language that it does not know. */
  const serve = Effect.fnUntraced(function* (model: Model, request: LiveRequest) {
    if (factsOf(model) === undefined) {
      yield* run(model, noAudio(request), () => {}).pipe(
        // The guess was wrong, and the model has loaded all the same.
        Effect.catchIf(
          (error) => error._tag === "InvalidRequest" && request.language === undefined,
          () => Effect.void,
        ),
      )
    }
    const { id } = model.view().entry
    const facts = factsOf(model)
    if (facts === undefined) {
      return yield* new EngineFailed({ model: id, reason: "unloaded", detail: "no facts" })
    }
    return { model, facts, queue: queueOf(model, facts) } satisfies Served
  })

  /**
   * The model that the catalog names for captions, held as long as the scope; undefined where there is none, it is not
   * deployed here, cannot be loaded or does not know the language. Captions come from the model itself then.
   */
  const draftOf = (
    model: Model,
    request: LiveRequest,
  ): Effect.Effect<Served | undefined, never, Scope.Scope> =>
    Effect.suspend(() => {
      const id = model.view().entry.transcription?.draft
      const draft = id === undefined ? undefined : registry.model(id)
      if (draft === undefined) return Effect.undefined
      return Effect.andThen(Effect.andThen(draft.hold, draft.keep), serve(draft, request)).pipe(
        Effect.map((served) =>
          request.language === undefined || served.facts.languages.includes(request.language)
            ? served
            : undefined,
        ),
        Effect.orElseSucceed(() => undefined),
      )
    })

  /** One call, when it is first in the queue, measured. Final results come before all captions. */
  const call = (
    { queue, model }: Served,
    { windowSeconds }: LiveRequest,
    spent: Spent,
    kind: LiveCall,
    request: () => TranscribeRequest,
    onSegment: (segment: Segment) => void,
  ): Effect.Effect<TranscribeEnd, LiveError> =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const nowMs = () => monotonicMsOf(clock)
      const measured = Effect.suspend(() => {
        const beganMs = nowMs()
        queue.load.began(beganMs, kind)
        return Effect.ensuring(
          run(model, request(), onSegment),
          Effect.sync(() => {
            const endedMs = nowMs()
            queue.load.ended(endedMs, kind)
            spent.calls++
            spent.engineMs += endedMs - beganMs
          }),
        )
      })
      const isFinal = kind === "final"
      const atOnce = !isFinal && queue.load.windowMs > longCallMs ? alone : pipelined
      const done = Effect.sync(() => queue.load.closingDone(nowMs()))
      return Effect.tap(
        queue.calls.take(nowMs() + (isFinal ? 0 : windowSeconds * 1000), measured, atOnce),
        kind === "closing" ? done : Effect.void,
      )
    })

  const transcribeAt =
    (served: Served, request: LiveRequest, spent: Spent): Transcribe<LiveError> =>
    (window, onSegment, kind) =>
      Effect.tap(
        call(served, request, spent, kind, () => window, onSegment),
        // A detected language is known only now.
        ({ language }) => {
          const problem = punctuationProblem(request.punctuation, language)
          return problem === undefined
            ? Effect.void
            : Effect.fail(new InvalidRequest({ field: "punctuation", problem }))
        },
      )

  /** Captions of one session; undefined where they come at the price of the final result anyway. */
  const captionerOf = (
    served: Served,
    draft: Served | undefined,
    request: LiveRequest,
    spent: Spent,
  ): Captioner<LiveError> | undefined => {
    const { captions } = draft?.facts ?? served.facts
    if (draft === undefined && captions === undefined) return undefined
    let isLost = false
    return {
      seconds: captions?.seconds ?? Math.min(assumedCaptionSeconds, served.facts.windowSeconds),
      isApart: draft !== undefined,
      transcribe: (window, onSegment) => {
        const own = call(served, request, spent, "caption", window, onSegment)
        if (draft === undefined || isLost) return own
        return call(draft, request, spent, "caption", window, onSegment).pipe(
          // A draft that has been unloaded, has crashed or refuses what it is given: the model itself goes on.
          Effect.catchIf(
            (error) => !isBusy(error),
            () => {
              isLost = true
              return own
            },
          ),
        )
      },
    }
  }

  return {
    serve,
    draftOf,
    transcribeAt,
    captionerOf,
    all: (): ReadonlyMap<string, ModelQueue> => queues,
    forget: (which: (model: string) => boolean) => {
      for (const model of queues.keys()) if (which(model)) queues.delete(model)
    },
  }
}

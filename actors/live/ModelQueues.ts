// The requests of live sessions to the engines: in the order of each engine's deadline queue, measured. Captions come
// from the model that the catalog names as a draft, if it names one. One queue for each model that was ever used live.
import { Clock, Effect, type Scope } from "effect"
import { punctuationProblem } from "#domain/language/Punctuated.ts"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { EngineFailed, InvalidRequest, ModelNotLoaded } from "#domain/wire/Errors.ts"
import type {
  Segment,
  TranscribeEnd,
  TranscribeRequest,
  TranscriptionFacts,
} from "#engines/protocol/Transcription.ts"
import type { Model } from "../model/Model.ts"
import type { ModelHandle } from "../model/ModelHandle.ts"
import type { ModelRegistry } from "../model/ModelRegistry.ts"
import { EngineLoad } from "./EngineLoad.ts"
import type { LiveCall, Transcribe } from "./IncrementalTranscriber.ts"
import type { Captioner } from "./LiveCaptions.ts"
import type { EngineUse, LiveError, LiveRequest, WindowedRequest } from "./SessionLease.ts"

/** One running call and one sent ahead: the engine never waits for a message. */
const pipelined = 2
/** For calls so long that the time of a message does not matter: a second one would only slow the first. */
const alone = 1

interface ModelQueue {
  readonly load: EngineLoad
  readonly calls: DeadlineQueue
}

/** A handle, with the first model that it got: all requests of a session run on that one. */
interface Found {
  readonly handle: ModelHandle<"transcription">
  readonly model: Model<"transcription">
}

/** A loaded model and its queue. */
interface Served extends Found {
  readonly facts: TranscriptionFacts
  readonly queue: ModelQueue
}

type Spent = { -readonly [K in keyof EngineUse]: EngineUse[K] }

/** A caption longer than this runs alone on the engine, milliseconds: sending a message takes a fraction of one. A guess. */
const longCallMs = 100

/** Longest audio of one caption of a draft without caption facts, seconds; the same as of engines that have them. */
const assumedCaptionSeconds = 8

/** A request without audio: it loads the model and is refused if the model does not know the language. */
const noAudio = (request: LiveRequest): TranscribeRequest => ({
  samples: new Float32Array(0),
  // A guess if no language is given: a model that detects it would need audio.
  language: request.language ?? "en",
  prompt: "",
  previousTokens: [],
  temperature: 0,
  punctuation: undefined,
  words: false,
  last: true,
})

/** Undefined where captions and the closing of pieces are counted together. */
const seedOf = ({ captions, closedSeconds, windowSeconds }: TranscriptionFacts, hasDraft: boolean) => {
  if (captions === undefined && !hasDraft) return undefined
  return { captionMs: 0, windowMs: 0, ...captions, closedSeconds: closedSeconds ?? windowSeconds }
}

export const isBusy = (error: LiveError): boolean => error._tag === "AtCapacity"

export const makeModelQueues = (registry: ModelRegistry["Service"]) => {
  const queues = new Map<string, ModelQueue>()

  /** The model with this id, if it transcribes. */
  const find = (id: string): Effect.Effect<Found, InvalidRequest | ModelNotLoaded> =>
    Effect.flatMap(registry.get(id, "transcription"), (handle) => {
      const model = handle.current()
      return model === undefined
        ? Effect.fail(new ModelNotLoaded({ model: id }))
        : Effect.succeed({ handle, model })
    })

  const queueOf = ({ model }: Found, facts: TranscriptionFacts): ModelQueue => {
    const { id, transcription } = model.view().entry
    const known = queues.get(id)
    if (known !== undefined) return known
    const seed = seedOf(facts, transcription?.draft !== undefined)
    const queue = { load: new EngineLoad(seed, facts.grows), calls: new DeadlineQueue() }
    queues.set(id, queue)
    return queue
  }

  const run = ({ handle, model }: Found, request: TranscribeRequest, onSegment: (segment: Segment) => void) =>
    handle.run(
      request,
      { take: onSegment },
      // The deadline queue decides the order of sessions.
      { urgency: "live", continues: true, on: model },
    )

  /** Loads the model if it is not loaded, and refuses a language that it does not know. */
  const serve = Effect.fnUntraced(function* (found: Found, request: LiveRequest) {
    const { model } = found
    if (model.facts() === undefined) {
      yield* run(found, noAudio(request), () => {}).pipe(
        // The guess was wrong, but the model has loaded.
        Effect.catchIf(
          (error) => error._tag === "InvalidRequest" && request.language === undefined,
          () => Effect.void,
        ),
      )
    }
    const { id } = model.view().entry
    const facts = model.facts()
    if (facts === undefined) {
      return yield* new EngineFailed({ model: id, reason: "unloaded", detail: "no facts" })
    }
    return { ...found, facts, queue: queueOf(found, facts) } satisfies Served
  })

  /**
   * The model that the catalog names for captions, held as long as the scope; undefined if there is none, it is not
   * deployed here, cannot be loaded or does not know the language. Captions then come from the model itself.
   */
  const draftOf = (
    { model }: Found,
    request: LiveRequest,
  ): Effect.Effect<Served | undefined, never, Scope.Scope> =>
    Effect.suspend(() => {
      const id = model.view().entry.transcription?.draft
      if (id === undefined) return Effect.undefined
      return find(id).pipe(
        Effect.tap((draft) => Effect.andThen(draft.model.hold, draft.model.keep)),
        Effect.flatMap((draft) => serve(draft, request)),
        Effect.map((served) =>
          request.language === undefined || served.facts.languages.includes(request.language)
            ? served
            : undefined,
        ),
        Effect.orElseSucceed(() => undefined),
      )
    })

  /** One request, sent when it is first in the queue, and measured. Final results go before all captions. */
  const call = (
    served: Served,
    { windowSeconds }: WindowedRequest,
    spent: Spent,
    kind: LiveCall,
    request: () => TranscribeRequest,
    onSegment: (segment: Segment) => void,
  ): Effect.Effect<TranscribeEnd, LiveError> =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const { queue } = served
      const nowMs = () => monotonicMsOf(clock)
      const measured = Effect.suspend(() => {
        const beganMs = nowMs()
        queue.load.began(beganMs, kind)
        return Effect.ensuring(
          run(served, request(), onSegment),
          Effect.sync(() => {
            const endedMs = nowMs()
            queue.load.ended(endedMs, kind)
            spent.calls++
            spent.engineMs += endedMs - beganMs
          }),
        )
      })
      const isFinal = kind === "final"
      // Those that come together share calls.
      const shared = served.facts.sharedCalls ?? alone
      const usual = !isFinal && queue.load.windowMs(nowMs()) > longCallMs ? alone : pipelined
      const atOnce = Math.max(shared, usual)
      const done = Effect.sync(() => queue.load.closingDone(nowMs()))
      return Effect.tap(
        queue.calls.take(nowMs() + (isFinal ? 0 : windowSeconds * 1000), measured, atOnce),
        kind === "closing" ? done : Effect.void,
      )
    })

  const transcribeAt =
    (served: Served, request: WindowedRequest, spent: Spent): Transcribe<LiveError> =>
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

  /** Captions of one session; undefined if they cost no less than the final result. */
  const captionerOf = (
    served: Served,
    draft: Served | undefined,
    request: WindowedRequest,
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
          // The draft was unloaded, has crashed or refuses the request: the model itself goes on.
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
    find,
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

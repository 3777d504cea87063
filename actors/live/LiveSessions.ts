// The live sessions of a node: admits one if the measured load of its model's engine allows it, and schedules its
// requests. A session belongs to the scope of its caller. One queue for each model; models share nothing.
import { Clock, Context, Effect, Exit, Layer, Scope } from "effect"
import { listenRateHz } from "#domain/audio/Audio.ts"
import type { CaptionWindows } from "#domain/audio/Listening.ts"
import { monotonicMs, monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { AtCapacity } from "#domain/wire/Errors.ts"
import { windowSeconds } from "#domain/wire/LiveParameters.ts"
import type { TranscriptionFacts } from "#engines/protocol/Engine.ts"
import { startChild } from "../Child.ts"
import { Drain } from "../Drain.ts"
import { admitNew } from "../device/Admission.ts"
import { ModelRegistry } from "../model/ModelRegistry.ts"
import * as Specifications from "../Specifications.ts"
import { CurrentParent } from "../TreeNode.ts"
import { IncrementalTranscriber } from "./IncrementalTranscriber.ts"
import { LiveAudio } from "./LiveAudio.ts"
import { LiveSession, longestSessionSeconds } from "./LiveSession.ts"
import { isBusy, makeModelQueues } from "./ModelQueues.ts"
import type { LiveError, LiveRequest, SessionLease } from "./SessionLease.ts"

/** A lease as the sweep reads it. */
interface Held {
  readonly isCurrent: () => boolean
  /** Sessions that have begun. The sweep drops those that have ended. */
  readonly sessions: Set<LiveSession<LiveError>>
  /** Lets the model end. */
  readonly release: Effect.Effect<void>
}

/** Sessions of one model, speaking or not. A guess: about 50 MB of sockets and buffers of one second. */
const maxSessions = 2_000
/** Those of one organization: there is room for others' while one fills its part. A guess. */
const maxOfOrganization = 1_500
/** When a refused session may try again: sessions last at most two minutes. A guess. */
const retryAfterMs = 5_000

/** Interval of the search for idle sessions: the 60 s of protocol 17.5 are met within 2 %. */
const sweepMs = 1_000

export class LiveSessions extends Context.Service<
  LiveSessions,
  {
    /**
     * A lease for sessions, one at a time, or a refusal: by the model, or by the measured load of its
     * engine. Loads a model that waits for its first request. The lease ends with the scope.
     */
    readonly open: (request: LiveRequest) => Effect.Effect<SessionLease, LiveError, Scope.Scope>
    /** By model: sessions, the share of the engine that they take, and the number of speakers that it can serve. */
    readonly gauges: (
      nowMs: number,
    ) => ReadonlyMap<string, { readonly sessions: number; readonly share: number; readonly fit: number }>
    /** Drops the measurements of these models: their engines were replaced or removed. Open sessions go on. */
    readonly forget: (which: (model: string) => boolean) => void
  }
>()("edgewise/actors/LiveSessions") {
  static readonly layer: Layer.Layer<LiveSessions, never, ModelRegistry | Drain> = Layer.effect(
    LiveSessions,
    Effect.suspend(() => make),
  )
}

/**
 * The windows of a session. A client that requests no length gets a caption for each chunk where the model transcribes in chunks: one is then
 * transcribed when its audio is there, so that little is left to do at the end. `facts`: undefined where another model makes the captions.
 */
const windowsOf = (
  { fromScratch, windowSeconds: asked }: LiveRequest,
  facts: TranscriptionFacts | undefined,
): CaptionWindows => {
  const samplesOf = (seconds: number) => Math.round(seconds * listenRateHz)
  const chunks = fromScratch ? undefined : facts?.grows
  if (asked === undefined && chunks !== undefined)
    return { samples: samplesOf(chunks.seconds), ahead: samplesOf(chunks.aheadSeconds) }
  return { samples: samplesOf(asked ?? windowSeconds.default), ahead: 0 }
}

const make = Effect.gen(function* () {
  const registry = yield* ModelRegistry
  const queues = makeModelQueues(registry)

  /** All running sessions. One fiber checks all of them: a fiber each would be most of the cost of a silent session. */
  const running = new Set<LiveSession<LiveError>>()

  /** All leases: one that waits for its next session must not keep a model that has been replaced. */
  const places = new Set<Held>()

  const sweep = Effect.gen(function* () {
    const nowMs = yield* monotonicMs
    for (const session of running) session.endIfIdle(nowMs)
    for (const place of places) {
      for (const session of place.sessions) if (session.isOver) place.sessions.delete(session)
      if (place.sessions.size > 0 || place.isCurrent()) continue
      places.delete(place)
      yield* place.release
    }
  })
  yield* startChild({
    ...Specifications.worker,
    name: "idle sessions",
    run: ({ ready }) =>
      Effect.andThen(Effect.sync(ready), Effect.forever(Effect.andThen(Effect.sleep(sweepMs), sweep))),
  })
  const parent = yield* CurrentParent
  parent.node.details = { holds: () => ({ sessions: running.size }) }
  /** Names sessions in the tree. */
  let began = 0
  const drained = Effect.map((yield* Drain).closing, () => {
    for (const session of running) session.stop("drain")
  })
  yield* Effect.forkScoped(drained)

  return LiveSessions.of({
    open: Effect.fnUntraced(function* (request) {
      yield* admitNew
      const found = yield* queues.find(request.model)
      const { model } = found
      // All windows of a session go to the same engine, also where a reload replaces the model.
      const hold = yield* Scope.fork(yield* Effect.scope)
      yield* Scope.provide(Effect.andThen(model.hold, model.keep), hold)
      const served = yield* queues.serve(found, request)
      const draft = yield* Scope.provide(queues.draftOf(found, request), hold)
      const { load } = served.queue
      const captions = draft?.queue.load
      const held: Held = {
        isCurrent: () =>
          found.handle.current() === model && (draft === undefined || draft.handle.current() === draft.model),
        sessions: new Set(),
        release: Scope.close(hold, Exit.void),
      }
      const clock = yield* Clock.Clock
      const nowMs = monotonicMsOf(clock)
      const { org } = request
      const windows = windowsOf(request, draft === undefined ? served.facts : undefined)
      const windowed = { ...request, windowSeconds: windows.samples / listenRateHz }
      const { windowSeconds } = windowed
      const speaker = { org, windowSeconds, beganAtMs: nowMs, lastAudioAtMs: nowMs }
      const entering = {
        replaced: request.replaces?.speaker,
        ...(captions === undefined ? {} : { captions }),
      }
      yield* Effect.acquireRelease(
        Effect.suspend(() =>
          load.sessions < maxSessions &&
          load.sessionsOf(org) < maxOfOrganization &&
          load.enter(speaker, nowMs, entering)
            ? Effect.void
            : Effect.fail(new AtCapacity({ model: request.model, retryAfterMs })),
        ),
        () => Effect.sync(() => load.leave(speaker)),
      )
      places.add(held)
      yield* Effect.addFinalizer(() => Effect.sync(() => places.delete(held)))
      const report = {
        audioReceived: (atMs: number) => {
          speaker.lastAudioAtMs = atMs
        },
        windowDone: (atMs: number, calls: number, lagMs: number, heardMs: number, final: boolean) => {
          // If captions are requests of their own, the final result does not show their cost.
          const isApart = draft !== undefined || served.facts.captions !== undefined
          if (!final || !isApart) (captions ?? load).windowDone(atMs, calls, heardMs)
          model.view().meters.deltaLagMs.record(lagMs)
        },
        paceSeconds: () => load.paceSeconds(speaker, monotonicMsOf(clock), captions),
      }
      let current: LiveSession<LiveError> | undefined
      const leave = () => {
        if (current !== undefined) running.delete(current)
      }
      yield* Effect.addFinalizer(() => Effect.sync(leave))
      const spent = { calls: 0, engineMs: 0 }
      return {
        spent,
        isCurrent: held.isCurrent,
        speaker,
        begin: (beganAtMs, mostSeconds = longestSessionSeconds) => {
          leave()
          const audio = new LiveAudio(mostSeconds * listenRateHz)
          const transcriber = new IncrementalTranscriber(
            audio,
            served.facts,
            request,
            queues.transcribeAt(served, windowed, spent),
            queues.captionerOf(served, draft, windowed, spent),
          )
          current = new LiveSession(audio, transcriber, windows, report, isBusy, beganAtMs, {
            name: `session ${++began} on ${request.model}`,
            parent,
          })
          running.add(current)
          held.sessions.add(current)
          return current
        },
      }
    }),
    gauges: (nowMs) =>
      new Map(
        [...queues.all()].map(([model, { load }]) => [
          model,
          { sessions: load.sessions, share: load.share(nowMs), fit: load.speakersThatFit(nowMs) },
        ]),
      ),
    forget: queues.forget,
  })
})

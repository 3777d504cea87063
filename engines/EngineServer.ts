// Serves one engine over a message port: load once, then any number of requests at a time until stopped.
// Runs inside an engine process or worker thread; engineMain gives it the port and the adapters.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import { NumberedMap } from "#domain/queues/UnorderedSet.ts"
import { fixedThreads, mostOf, type ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import {
  type Engine,
  type EngineDescriptor,
  EngineError,
  type EngineSpec,
  type EngineThreads,
  type Outlet,
  type TranscribeCall,
  type TranscribeRequest,
} from "./protocol/Engine.ts"
import type {
  AnyFromEngine,
  AnyOpen,
  AnyToEngine,
  RequestId,
  Step,
  WireError,
} from "./protocol/EngineProtocol.ts"
import { onOpening } from "./protocol/Opening.ts"
import { isOutOfMemory } from "./protocol/OutOfMemory.ts"
import { StepBatch } from "./protocol/StepBatch.ts"
import type { End, EngineKind, Request } from "./protocol/Verbs.ts"
import { readSpan } from "./shared/listening/Span.ts"

export interface EnginePort {
  readonly send: (message: AnyFromEngine) => void
  readonly onMessage: (listener: (message: AnyToEngine) => void) => void
  /** Ends this process or thread. */
  readonly exit: (code: number) => void
}

interface OpenRequest {
  fiber: Fiber.Fiber<unknown, EngineError> | undefined
  paused: boolean
  readonly gate: Latch.Latch
}

const toWireError = (cause: Cause.Cause<EngineError>): WireError => {
  const failure = cause.reasons.find(Cause.isFailReason)?.error
  if (failure !== undefined) {
    return {
      reason: failure.reason,
      field: failure.field,
      detail: failure.detail,
      ...(failure.promptTokens === undefined ? {} : { promptTokens: failure.promptTokens }),
      ...(failure.contextTokens === undefined ? {} : { contextTokens: failure.contextTokens }),
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
        catch: () => new EngineError({ reason: "Failed", field: "", detail: "the audio could not be read" }),
      })

/** The kind of an engine with the facts of that kind; of the engine itself nothing can be sent. */
const kindAndFacts = (engine: Engine) => {
  switch (engine.kind) {
    case "text":
      return { kind: engine.kind, facts: engine.facts }
    case "speech":
      return { kind: engine.kind, facts: engine.facts }
    case "transcription":
      return { kind: engine.kind, facts: engine.facts }
  }
}

/** Threads that can change while it runs; undefined for engines with a fixed number. */
const threadsOf = (engine: Engine): EngineThreads | undefined =>
  engine.kind === "text" ? engine.threads : undefined

type Call<K extends EngineKind> = (
  engine: Engine<K>,
  request: Request<K>,
  out: Outlet<K>,
) => Effect.Effect<End<K>, EngineError>

/** The verb of each kind. */
const calls: { readonly [K in EngineKind]: Call<K> } = {
  text: (engine, request, out) => engine.generate(request, out),
  speech: (engine, request, out) => engine.synthesize(request, out),
  transcription: (engine, request, out) =>
    Effect.flatMap(withSamples(request), (input) => engine.transcribe(input, out)),
}

const failed = (detail: string): WireError => ({ reason: "Failed", field: "", detail })

/**
 * Most step messages that were sent and not acknowledged. The fastest engine here (the fake one: 1,000 steps a second,
 * measured) sends as many in a quarter of a second, so a gateway that is not overloaded never reaches it.
 */
const stepsOnTheirWay = 256

export const serveEngine = (
  port: EnginePort,
  loadAdapter: (name: string) => Promise<EngineDescriptor> | undefined,
): void => {
  const open = new NumberedMap<OpenRequest>()
  /** Steps sent and not acknowledged. If the gateway falls behind, its engines pause, so messages do not pile up. */
  let onTheirWay = 0
  let congested = false
  const setGates = () => {
    for (const { gate, paused } of open.values()) paused || congested ? gate.closeUnsafe() : gate.openUnsafe()
  }
  const onSteps = (change: number) => {
    onTheirWay += change
    const now = congested ? onTheirWay > stepsOnTheirWay / 2 : onTheirWay >= stepsOnTheirWay
    if (now === congested) return
    congested = now
    setGates()
  }
  const refuse = (id: RequestId, detail: string) => {
    onSteps(1)
    port.send({ type: "step", ended: [{ id, error: failed(detail) }] })
  }
  const scope = Scope.makeUnsafe()
  let engine: Engine | undefined
  /** Begins a request; until the engine has loaded, every request fails. */
  let begin = ({ id }: AnyOpen): void => refuse(id, "engine is not loaded")
  /** Sends what the engine has produced. */
  let flush = (): void => {}
  /** The last limit of its threads; it may come before the engine has loaded. */
  let mostThreads: number | undefined
  let limit: ((most: number) => void) | undefined

  const load = Effect.fnUntraced(function* (spec: EngineSpec) {
    const importing = loadAdapter(spec.adapter)
    if (importing === undefined) return yield* Effect.die(new Error(`unknown adapter ${spec.adapter}`))
    const descriptor = yield* Effect.promise(() => importing)
    const { chooseThreads } = descriptor
    const { trial } = spec
    const chosen: ThreadChoice =
      trial === undefined || chooseThreads === undefined
        ? fixedThreads(spec.threads, trial === undefined ? "catalog" : "size")
        : yield* chooseThreads(spec, trial)
    const loaded = yield* descriptor
      .acquire(chooseThreads === undefined ? spec : { ...spec, threads: mostOf(chosen) })
      .pipe(Scope.provide(scope))
    const own = threadsOf(loaded)
    limit = own?.limit ?? descriptor.limitThreads
    return { loaded, chosen, own }
  })

  const onLoad = (spec: EngineSpec) => {
    Effect.runFork(load(spec)).addObserver((exit) => {
      if (Exit.isSuccess(exit)) {
        const { chosen, loaded, own } = exit.value
        engine = loaded
        begin = serve(loaded)
        if (mostThreads !== undefined) limit?.(mostThreads)
        const residentBytes = process.memoryUsage.rss()
        port.send({
          type: "loaded",
          ...kindAndFacts(loaded),
          threads: own?.choice() ?? chosen,
          residentBytes,
        })
        own?.onChoice((threads) => port.send({ type: "threads", threads }))
        onOpening((on) => port.send({ type: "opening", on }))
      } else {
        port.send({ type: "load-failed", error: toWireError(exit.cause) })
      }
    })
  }

  /** How requests begin on an engine of one kind. */
  const opener = <K extends EngineKind>(kind: K, engine: Engine<K>, send: (step: Step<K>) => void) => {
    const call: Call<K> = calls[kind]
    const batch = new StepBatch(kind, (step) => {
      onSteps(1)
      send(step)
    })
    flush = () => batch.flush()
    const onFailed = (id: RequestId, error: WireError) => {
      batch.onError(id, error)
      if (!isOutOfMemory(error.detail)) return
      // This request's error is sent first. The gateway fails the other requests and starts a new process.
      batch.flush()
      port.exit(1)
    }
    return (id: RequestId, request: Request<K>): void => {
      const entry: OpenRequest = { fiber: undefined, paused: false, gate: Latch.makeUnsafe(!congested) }
      open.set(id, entry)
      const out: Outlet<K> = {
        started: (started) => batch.onStarted(id, started),
        push: (unit) => batch.onUnit(id, unit),
        paused: () => entry.paused || congested,
        resumed: entry.gate.await,
      }
      const fiber = Effect.runFork(call(engine, request, out))
      entry.fiber = fiber
      fiber.addObserver((exit) => {
        open.delete(id)
        if (Exit.isSuccess(exit)) batch.onEnd(id, exit.value)
        else onFailed(id, toWireError(exit.cause))
      })
    }
  }

  /** Requests come from another process, so their verb is compared with the engine's. */
  const serve = (loaded: Engine): ((message: AnyOpen) => void) => {
    const refuseForeign = ({ id, type }: AnyOpen) =>
      refuse(id, `${type} is not a verb of a ${loaded.kind} model`)
    switch (loaded.kind) {
      case "text": {
        const begin = opener("text", loaded, port.send)
        return (asked) => (asked.type === "generate" ? begin(asked.id, asked.request) : refuseForeign(asked))
      }
      case "speech": {
        const begin = opener("speech", loaded, port.send)
        return (asked) =>
          asked.type === "synthesize" ? begin(asked.id, asked.request) : refuseForeign(asked)
      }
      case "transcription": {
        const begin = opener("transcription", loaded, port.send)
        return (asked) =>
          asked.type === "transcribe" ? begin(asked.id, asked.request) : refuseForeign(asked)
      }
    }
  }

  const onStop = () => {
    const stop = Effect.gen(function* () {
      const fibers = open.values().flatMap((entry) => (entry.fiber === undefined ? [] : [entry.fiber]))
      yield* Fiber.interruptAll(fibers)
      flush()
      yield* Scope.close(scope, Exit.void)
    })
    Effect.runFork(stop).addObserver((exit) => port.exit(Exit.isSuccess(exit) ? 0 : 1))
  }

  port.onMessage((message) => {
    switch (message.type) {
      case "generate":
      case "synthesize":
      case "transcribe":
        return begin(message)
      case "load":
        return onLoad(message.spec)
      case "cancel":
        return open.get(message.id)?.fiber?.interruptUnsafe()
      case "pause": {
        const entry = open.get(message.id)
        if (entry !== undefined) entry.paused = true
        return setGates()
      }
      case "resume": {
        const entry = open.get(message.id)
        if (entry !== undefined) entry.paused = false
        return setGates()
      }
      case "ack":
        return onSteps(-message.steps)
      case "ping":
        return port.send({
          type: "pong",
          n: message.n,
          residentBytes: process.memoryUsage.rss(),
          open: open.size,
        })
      case "lean":
        return engine?.kind === "text" ? engine.lean?.(message.on) : undefined
      case "threads":
        mostThreads = message.most
        return limit?.(message.most)
      case "stop":
        return onStop()
    }
  })
}

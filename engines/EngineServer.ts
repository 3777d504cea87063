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
  type GenerateRequest,
  type Outlet,
  type SynthesizeRequest,
  type TextDelta,
  type TranscribeCall,
  type TranscribeRequest,
} from "./protocol/Engine.ts"
import {
  EventKind,
  type FromEngine,
  type RequestId,
  type ToEngine,
  type WireError,
} from "./protocol/EngineProtocol.ts"
import { onOpening } from "./protocol/Opening.ts"
import { isOutOfMemory } from "./protocol/OutOfMemory.ts"
import { StepBatch } from "./protocol/StepBatch.ts"
import { readSpan } from "./shared/listening/Span.ts"

export interface EnginePort {
  readonly send: (message: FromEngine) => void
  readonly onMessage: (listener: (message: ToEngine) => void) => void
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
  return { reason: "Failed", field: "", detail: defect instanceof Error ? defect.message : String(defect) }
}

const withSamples = ({ samples, ...rest }: TranscribeCall): Effect.Effect<TranscribeRequest, EngineError> =>
  samples instanceof Float32Array
    ? Effect.succeed({ ...rest, samples })
    : Effect.try({
        try: () => ({ ...rest, samples: readSpan(samples) }),
        catch: () => new EngineError({ reason: "Failed", field: "", detail: "the audio could not be read" }),
      })

/** Threads that can change while it runs; undefined for engines with a fixed number. */
const threadsOf = (engine: Engine): EngineThreads | undefined =>
  engine.kind === "text" ? engine.threads : undefined

/** The verb of an engine's kind, as one function. The request was validated at the edge; it is plain data here. */
const callVerb = (
  engine: Engine,
  request: unknown,
  out: Outlet<unknown, unknown>,
): Effect.Effect<unknown, EngineError> => {
  switch (engine.kind) {
    case "text":
      return engine.generate(request as GenerateRequest, out)
    case "speech":
      return engine.synthesize(request as SynthesizeRequest, out)
    case "transcription":
      return Effect.flatMap(withSamples(request as TranscribeCall), (heard) => engine.transcribe(heard, out))
  }
}

/**
 * Step messages that may be on their way to the gateway: a quarter of a second of the fastest engine here (1,000 steps a
 * second, measured with the fake one), so a gateway that keeps up never meets it.
 */
const stepsOnTheirWay = 256

export const serveEngine = (
  port: EnginePort,
  loadAdapter: (name: string) => Promise<EngineDescriptor> | undefined,
): void => {
  const open = new NumberedMap<OpenRequest>()
  /** Steps sent and not acknowledged. A gateway that falls behind pauses its engines instead of collecting messages. */
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
  const batch = new StepBatch((message) => {
    onSteps(1)
    port.send(message)
  })
  const scope = Scope.makeUnsafe()
  let engine: Engine | undefined
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
        if (mostThreads !== undefined) limit?.(mostThreads)
        const residentBytes = process.memoryUsage.rss()
        const { facts, kind } = loaded
        port.send({ t: "loaded", kind, facts, threads: own?.choice() ?? chosen, residentBytes })
        own?.onChoice((threads) => port.send({ t: "threads", threads }))
        onOpening((on) => port.send({ t: "opening", on }))
      } else {
        port.send({ t: "load-failed", error: toWireError(exit.cause) })
      }
    })
  }

  const onFailed = (id: RequestId, error: WireError) => {
    batch.add(id, EventKind.error, error)
    if (!isOutOfMemory(error.detail)) return
    // The reason leaves first; the gateway sees to the others, and to a new process.
    batch.flush()
    port.exit(1)
  }

  const onOpen = (id: RequestId, request: unknown) => {
    if (engine === undefined) {
      batch.add(id, EventKind.error, { reason: "Failed", field: "", detail: "engine is not loaded" })
      return
    }
    const entry: OpenRequest = { fiber: undefined, paused: false, gate: Latch.makeUnsafe(!congested) }
    open.set(id, entry)
    const out: Outlet<unknown, unknown> = {
      started: (facts) => batch.add(id, EventKind.started, facts),
      push:
        engine.kind === "text"
          ? (unit) => batch.addText(id, unit as TextDelta)
          : (unit) => batch.add(id, EventKind.unit, unit),
      paused: () => entry.paused || congested,
      resumed: entry.gate.await,
    }
    const fiber = Effect.runFork(callVerb(engine, request, out))
    entry.fiber = fiber
    fiber.addObserver((exit) => {
      open.delete(id)
      if (Exit.isSuccess(exit)) batch.add(id, EventKind.end, exit.value)
      else onFailed(id, toWireError(exit.cause))
    })
  }

  const onStop = () => {
    const stop = Effect.gen(function* () {
      const fibers = open.values().flatMap((entry) => (entry.fiber === undefined ? [] : [entry.fiber]))
      yield* Fiber.interruptAll(fibers)
      batch.flush()
      yield* Scope.close(scope, Exit.void)
    })
    Effect.runFork(stop).addObserver((exit) => port.exit(Exit.isSuccess(exit) ? 0 : 1))
  }

  port.onMessage((message) => {
    switch (message.t) {
      case "load":
        return onLoad(message.spec)
      case "open":
        return onOpen(message.id, message.request)
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
          t: "pong",
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

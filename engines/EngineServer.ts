// Serves one engine over a message port: load once, then any number of requests at a time until stopped.
// Runs inside an engine process or worker thread; engineMain gives it the port and the adapters.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { fixedThreads, mostOf, type ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { type Call, calls, failed, kindAndFacts, threadsOf, toWireError } from "./EngineCalls.ts"
import { OpenRequests } from "./OpenRequests.ts"
import { Preparations } from "./Preparations.ts"
import type { Engine, EngineDescriptor, EngineSpec, Outlet, Prepared } from "./protocol/Engine.ts"
import type {
  AnyFromEngine,
  AnyOpen,
  AnyToEngine,
  RequestId,
  Step,
  WireError,
} from "./protocol/EngineProtocol.ts"
import { missingLibrary } from "./protocol/MissingLibrary.ts"
import { onOpening } from "./protocol/Opening.ts"
import { isOutOfMemory } from "./protocol/OutOfMemory.ts"
import { StepBatch } from "./protocol/StepBatch.ts"
import type { EngineKind, Request } from "./protocol/Verbs.ts"

export interface EnginePort {
  readonly send: (message: AnyFromEngine) => void
  readonly onMessage: (listener: (message: AnyToEngine) => void) => void
  /** Ends this process or thread. */
  readonly exit: (code: number) => void
}

export const serveEngine = (
  port: EnginePort,
  loadAdapter: (name: string) => Promise<EngineDescriptor> | undefined,
): void => {
  const open = new OpenRequests()
  const refuse = (id: RequestId, detail: string) => {
    open.countSteps(1)
    port.send({ type: "step", ended: [{ id, error: failed(detail) }] })
  }
  const preparations = new Preparations((event) => {
    open.countSteps(1)
    port.send({ type: "step", prepared: [event] })
  })
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
        if (loaded.kind === "text") loaded.costs?.onMeasured((costs) => port.send({ type: "costs", costs }))
        onOpening((on) => port.send({ type: "opening", on }))
      } else {
        const error = toWireError(exit.cause)
        port.send({
          type: "load-failed",
          error: { ...error, detail: missingLibrary(error.detail) ?? error.detail },
        })
      }
    })
  }

  /** How requests begin on an engine of one kind. */
  const opener = <K extends EngineKind>(kind: K, engine: Engine<K>, send: (step: Step<K>) => void) => {
    const call: Call<K> = calls[kind]
    const batch = new StepBatch(kind, (step) => {
      open.countSteps(1)
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
    return (id: RequestId, request: Request<K>, prepared?: Prepared): void => {
      const entry = open.begin(id)
      const out: Outlet<K> = {
        started: (started) => batch.onStarted(id, started),
        push: (unit) => batch.onUnit(id, unit),
        paused: () => entry.paused || open.congested,
        resumed: entry.gate.await,
        ...(prepared === undefined ? {} : { prepared }),
      }
      const fiber = Effect.runFork(call(engine, request, out))
      entry.fiber = fiber
      fiber.addObserver((exit) => {
        open.end(id)
        prepared?.release()
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
        return (asked) =>
          asked.type === "generate"
            ? begin(asked.id, asked.request, preparations.take(asked.prepared))
            : refuseForeign(asked)
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
      case "embedding": {
        const begin = opener("embedding", loaded, port.send)
        return (asked) => (asked.type === "embed" ? begin(asked.id, asked.request) : refuseForeign(asked))
      }
      case "detection": {
        const begin = opener("detection", loaded, port.send)
        return (asked) => (asked.type === "detect" ? begin(asked.id, asked.request) : refuseForeign(asked))
      }
    }
  }

  const onStop = () => {
    preparations.discardAll()
    const stop = Effect.gen(function* () {
      yield* Fiber.interruptAll(open.fibers())
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
      case "embed":
      case "detect":
        return begin(message)
      case "load":
        return onLoad(message.spec)
      case "cancel":
        return open.cancel(message.id)
      case "prepare":
        return preparations.begin(engine, message.id, message.terms, message.owner)
      case "discard":
        return preparations.discard(message.id)
      case "pause":
        return open.setPaused(message.id, true)
      case "resume":
        return open.setPaused(message.id, false)
      case "ack":
        return open.countSteps(-message.steps)
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

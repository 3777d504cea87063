// Engine processes that outlive their node: the next node of the worker that loads the same model with the same settings takes over
// the process of one that has ended, because a process takes 0.2 s of a processor to start and up to 2 s to load its weights. Only what
// a node held at its end is kept: a model that is unloaded, reloaded or killed ends its process, as in the product.
import { type Context, Deferred, Effect, Exit, Scope } from "effect"
import {
  type EngineExit,
  type EngineProcess,
  type EngineProcessOptions,
  start as startProcess,
} from "#actors/engine/EngineProcess.ts"
import type { FromEngine, ToEngine } from "#engines/protocol/EngineProtocol.ts"
import type { EngineKind } from "#engines/protocol/Verbs.ts"

/** Processes that a worker keeps, about 100 MB each; the oldest ends first. */
const mostKept = 4
/** How long an engine may take to end the requests of the node that has ended, milliseconds. */
const drainMs = 300
/** More threads than any engine uses. */
const allThreads = 1_024

/** A running engine, with or without a node that it serves. */
interface Kept {
  /** Environment, files and the message that loads it. */
  readonly key: string
  readonly process: EngineProcess<EngineKind>
  readonly scope: Scope.Closeable
  /** What it printed until it had loaded. */
  readonly printed: Array<readonly ["stdout" | "stderr", Buffer]>
  loaded: FromEngine<EngineKind> | undefined
  /** Steps that its node has not acknowledged. */
  unacknowledged: number
  /** Preparations whose request has not begun. */
  readonly prepared: Set<number>
  onMessage: (message: FromEngine<EngineKind>) => void
  onExit: (exit: EngineExit) => void
  onOutput: (stream: "stdout" | "stderr", chunk: Buffer) => void
}

/** Without a node, the oldest first. */
const idle: Array<Kept> = []

const end = (kept: Kept): Effect.Effect<void> => Scope.close(kept.scope, Exit.void)

const drop = (kept: Kept): void => {
  const at = idle.indexOf(kept)
  if (at >= 0) idle.splice(at, 1)
}

const acknowledge = (kept: Kept): void => {
  if (kept.unacknowledged > 0) kept.process.send({ type: "ack", steps: kept.unacknowledged })
  kept.unacknowledged = 0
}

/** Whether it has no requests, asked of the process itself. */
const isQuiet = (kept: Kept): Promise<boolean> =>
  new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), drainMs)
    kept.onMessage = (message) => {
      if (message.type === "step") acknowledge(kept)
      if (message.type !== "pong") return
      if (message.open > 0) kept.process.send({ type: "ping", n: 0 })
      else {
        clearTimeout(late)
        resolve(true)
      }
    }
    kept.process.send({ type: "ping", n: 0 })
  })

/** Keeps it for another node, or ends it. */
const keep = async (kept: Kept): Promise<void> => {
  kept.onOutput = () => {}
  kept.onExit = () => {}
  for (const id of kept.prepared) kept.process.send({ type: "discard", id })
  kept.prepared.clear()
  acknowledge(kept)
  if (!(await isQuiet(kept)) || kept.process.hasExited()) return Effect.runPromise(end(kept))
  // Without caches, and with all threads: as after a load.
  kept.process.send({ type: "lean", on: true })
  kept.process.send({ type: "lean", on: false })
  kept.process.send({ type: "threads", most: allThreads })
  kept.onMessage = () => {}
  idle.push(kept)
  const oldest = idle.length > mostKept ? idle.shift() : undefined
  if (oldest !== undefined) await Effect.runPromise(end(oldest))
}

const started = (
  key: string,
  options: EngineProcessOptions<EngineKind>,
  context: Context.Context<never>,
): Kept => {
  const scope = Scope.makeUnsafe()
  const printed: Kept["printed"] = []
  const process = startProcess({
    ...options,
    onMessage: (message) => {
      if (message.type === "loaded") kept.loaded = message
      if (message.type === "step") kept.unacknowledged++
      kept.onMessage(message)
    },
    onOutput: (stream, chunk) => {
      if (kept.loaded === undefined) printed.push([stream, chunk])
      kept.onOutput(stream, chunk)
    },
  }).pipe(Scope.provide(scope), Effect.provideContext(context), Effect.runSync)
  const kept: Kept = {
    key,
    process,
    scope,
    printed,
    prepared: new Set(),
    loaded: undefined,
    unacknowledged: 0,
    onMessage: () => {},
    onExit: () => {},
    onOutput: () => {},
  }
  void Effect.runPromise(process.exited).then((exit) => {
    drop(kept)
    kept.onExit(exit)
  })
  return kept
}

const note = (kept: Kept, message: ToEngine<EngineKind>): void => {
  if (message.type === "ack") kept.unacknowledged -= message.steps
  else if (message.type === "prepare") kept.prepared.add(message.id)
  else if (message.type === "discard") kept.prepared.delete(message.id)
  else if ("prepared" in message && message.prepared !== undefined) kept.prepared.delete(message.prepared)
}

/** The engines of one node. */
export class KeptEngines {
  private isEnding = false

  /** From now on, engines that are ended are kept. To be called before the node's scope closes. */
  nodeEnds(): void {
    this.isEnding = true
  }

  /** Provide it as `EngineStarter`. */
  readonly start = <K extends EngineKind>(
    options: EngineProcessOptions<K>,
  ): Effect.Effect<EngineProcess<K>, never, Scope.Scope> =>
    options.isolation === "thread"
      ? startProcess(options)
      : Effect.acquireRelease(
          Effect.map(Effect.context<never>(), (context) => new Lease(options as never, context)),
          (lease) => Effect.suspend(() => lease.release(this.isEnding)),
        ).pipe(Effect.map((lease) => lease as unknown as EngineProcess<K>))
}

/** A node's use of a process, as the node sees it. */
class Lease implements EngineProcess<EngineKind> {
  private readonly options: EngineProcessOptions<EngineKind>
  private readonly context: Context.Context<never>
  private readonly done = Deferred.makeUnsafe<EngineExit>()
  private kept: Kept | undefined

  constructor(options: EngineProcessOptions<EngineKind>, context: Context.Context<never>) {
    this.options = options
    this.context = context
  }

  get pid(): number | undefined {
    return this.kept?.process.pid
  }

  readonly exited = Effect.suspend(() => Deferred.await(this.done))
  readonly hasExited = (): boolean => Deferred.isDoneUnsafe(this.done)
  readonly kill = (): void => this.kept?.process.kill()

  /** The first message loads the model: only then is it known which process can serve. */
  readonly send = (message: ToEngine<EngineKind>): void => {
    if (this.kept === undefined) this.kept = this.take(message)
    else {
      note(this.kept, message)
      this.kept.process.send(message)
    }
  }

  private take(load: ToEngine<EngineKind>): Kept {
    const { environment, files, onMessage, onOutput = () => {} } = this.options
    const key = JSON.stringify([environment, files, load])
    const found = idle.find((each) => each.key === key && !each.process.hasExited())
    const kept = found ?? started(key, this.options, this.context)
    kept.onMessage = onMessage
    kept.onOutput = onOutput
    kept.onExit = (exit) => Deferred.doneUnsafe(this.done, Effect.succeed(exit))
    if (found === undefined) kept.process.send(load)
    else {
      drop(found)
      setImmediate(() => {
        if (this.hasExited()) return
        for (const [stream, chunk] of found.printed) onOutput(stream, chunk)
        onMessage(found.loaded!)
      })
    }
    return kept
  }

  release(isKept: boolean): Effect.Effect<void> {
    const { kept } = this
    if (kept === undefined) return Effect.void
    // An engine that transcribes may read only the samples in its own node's data directory.
    const canServe = kept.loaded?.type === "loaded" && kept.loaded.kind !== "transcription"
    if (!isKept || !canServe || kept.process.hasExited()) return end(kept)
    return Effect.andThen(
      Effect.promise(() => keep(kept)),
      Effect.sync(() => Deferred.doneUnsafe(this.done, Effect.succeed({ code: 0, signal: null }))),
    )
  }
}

// One deployed model as an actor: loads and unloads its engine, one message at a time, and keeps its status.
// Requests do not pass through the mailbox; they go to the current EngineHost, which this actor publishes.

import { Cause, Effect, Exit, Scope } from "effect"
import { ModelNotLoaded, ModelUnavailable } from "#domain/Errors.ts"
import type { ModelEntry } from "#domain/Model.ts"
import type { EngineFacts, EngineSpec } from "#engines/Engine.ts"
import { type ActorRef, Message, spawn } from "./Actor.ts"
import { Device } from "./Device.ts"
import { EngineHost, type HostEvent, type Listener, type RunError } from "./EngineHost.ts"
import { type ModelEvent, type ModelStatus, next } from "./ModelStatus.ts"
import * as Tree from "./Tree.ts"

/** Brings the model into memory; does nothing when it is there, unless `force`. */
export class Load extends Message<EngineFacts, ModelUnavailable> {
  readonly _tag = "Load"
  readonly force: boolean
  constructor(force: boolean) {
    super()
    this.force = force
  }
}

/** Takes the model out of memory and answers when its process is gone. `true` if it was in memory. */
export class Unload extends Message<boolean, ModelUnavailable> {
  readonly _tag = "Unload"
}

type ModelMessage = Load | Unload

/** What anybody may see of a model at any time, without asking its mailbox. */
export interface ModelView {
  readonly entry: ModelEntry
  readonly status: ModelStatus
  readonly host: EngineHost | undefined
  /** Why it is `failed`; for operators, never for callers. */
  readonly lastFailure: string
}

/** The actor's state: the scope of what is in memory, if anything is. Closed with the incarnation. */
interface InMemory {
  scope: Scope.Closeable | undefined
}

export class Model {
  private readonly entry: ModelEntry
  private readonly spec: EngineSpec
  private readonly memoryBytes: number
  private readonly device: Device["Service"]
  private ref: ActorRef<ModelMessage> | undefined
  private status: ModelStatus = "unloaded"
  private host: EngineHost | undefined
  private lastFailure = ""
  private failedAtMs = Number.NEGATIVE_INFINITY
  /** An operator's unload stays in force until an operator's load. */
  private held = false

  private constructor(entry: ModelEntry, spec: EngineSpec, memoryBytes: number, device: Device["Service"]) {
    this.entry = entry
    this.spec = spec
    this.memoryBytes = memoryBytes
    this.device = device
  }

  /** Starts the actor in the caller's scope. `memoryBytes` is what it claims of the device while loaded. */
  static make(
    entry: ModelEntry,
    spec: EngineSpec,
    memoryBytes: number,
  ): Effect.Effect<Model, never, Scope.Scope | Device> {
    return Effect.gen(function* () {
      const model = new Model(entry, spec, memoryBytes, yield* Device)
      model.ref = yield* spawn<InMemory, ModelMessage>({
        name: `model ${entry.id}`,
        capacity: Tree.modelMailbox,
        restart: Tree.model,
        initial: Effect.acquireRelease(
          Effect.sync((): InMemory => ({ scope: undefined })),
          (memory) => model.release(memory),
        ),
        handle: (memory, message) =>
          Effect.map(model.handle(memory, message), (reply) => [memory, reply] as const),
      })
      return model
    })
  }

  view(): ModelView {
    return { entry: this.entry, status: this.status, host: this.host, lastFailure: this.lastFailure }
  }

  /** An operator's or the node's own load. */
  load(force: boolean): Effect.Effect<EngineFacts, ModelUnavailable> {
    return Effect.suspend(() => {
      this.held = false
      return this.ask(new Load(force))
    })
  }

  /** An operator's unload: requests get `Model not loaded` until it is loaded again. */
  get unload(): Effect.Effect<boolean, ModelUnavailable> {
    return Effect.suspend(() => {
      this.held = true
      return this.ask(new Unload())
    })
  }

  /** Runs one request, loading the model first where nobody has unloaded it on purpose. */
  run<Started, Unit, End>(
    request: unknown,
    listener: Listener<Started, Unit>,
    background = false,
  ): Effect.Effect<End, RunError | ModelNotLoaded> {
    return Effect.suspend((): Effect.Effect<End, RunError | ModelNotLoaded> => {
      const { host } = this
      // While an engine restarts, its host keeps the waiting line: the request waits there.
      if (host !== undefined && this.status !== "failed")
        return host.run<Started, Unit, End>(request, listener, background)
      if (this.held) return Effect.fail(new ModelNotLoaded({ model: this.entry.id }))
      if (this.reviveInMs() > 0) return Effect.fail(this.unavailable())
      return Effect.flatMap(this.ask(new Load(false)), () =>
        this.host === undefined
          ? Effect.fail(this.unavailable())
          : this.host.run<Started, Unit, End>(request, listener, background),
      )
    })
  }

  private ask<A>(message: Message<A, ModelUnavailable> & ModelMessage): Effect.Effect<A, ModelUnavailable> {
    if (this.ref === undefined) return Effect.fail(this.unavailable())
    return (this.ref.ask(message) as Effect.Effect<A, unknown>).pipe(
      Effect.mapError(() => this.unavailable()),
    )
  }

  private handle(memory: InMemory, message: ModelMessage): Effect.Effect<unknown, ModelUnavailable> {
    if (message._tag === "Unload") {
      const was = memory.scope !== undefined
      return Effect.as(this.release(memory), was)
    }
    if (this.status === "loaded" && !message.force && this.host?.facts !== undefined) {
      return Effect.succeed(this.host.facts)
    }
    return Effect.andThen(this.release(memory), this.bringIn(memory))
  }

  private readonly bringIn = Effect.fnUntraced({ self: this }, function* (this: Model, memory: InMemory) {
    const scope = yield* Scope.make()
    memory.scope = scope
    this.move("load")
    const { entry } = this
    const exit = yield* Effect.gen({ self: this }, function* () {
      yield* this.device.claim({
        modelId: entry.id,
        memoryBytes: this.memoryBytes,
        threads: entry.runtime.threads,
      })
      const host = yield* EngineHost.make(entry, this.spec, (event) => this.onHostEvent(event))
      this.host = host
      return yield* host.loaded
    }).pipe(Scope.provide(scope), Effect.exit)
    if (Exit.isSuccess(exit)) return exit.value
    if (this.lastFailure === "") this.fail(Cause.pretty(exit.cause))
    yield* Scope.close(scope, Exit.void)
    memory.scope = undefined
    this.host = undefined
    return yield* this.unavailable()
  })

  private release(memory: InMemory): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { scope } = memory
      if (scope === undefined) return Effect.void
      memory.scope = undefined
      this.host = undefined
      return Effect.andThen(
        Scope.close(scope, Exit.void),
        Effect.sync(() => this.move("unloaded")),
      )
    })
  }

  private reviveInMs(): number {
    return this.status === "failed" ? this.failedAtMs + Tree.reviveAfterMs - performance.now() : 0
  }

  private unavailable(): ModelUnavailable {
    return new ModelUnavailable({ model: this.entry.id, retryAfterMs: Math.max(1_000, this.reviveInMs()) })
  }

  private move(event: ModelEvent): void {
    this.status = next(this.status, event) ?? this.status
  }

  private fail(detail: string): void {
    this.lastFailure = detail
    this.failedAtMs = performance.now()
    this.move("gave-up")
  }

  private onHostEvent(event: HostEvent): void {
    if (event.event === "gave-up") {
      this.fail(event.detail)
      return
    }
    if (event.event === "ready") this.lastFailure = ""
    this.move(event.event)
  }
}

// What an engine prepares for requests that have no slot yet: begun by the gateway, kept until the request comes, or is discarded.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { failed, toWireError } from "./EngineCalls.ts"
import type { Engine, EngineError, Owner, Preparation, Prepared } from "./protocol/Engine.ts"
import type { PreparationId, PreparedEvent } from "./protocol/EngineProtocol.ts"

export class Preparations {
  readonly #running = new Map<PreparationId, Fiber.Fiber<Prepared, EngineError>>()
  readonly #prepared = new Map<PreparationId, Prepared>()
  readonly #report: (event: PreparedEvent) => void

  constructor(report: (event: PreparedEvent) => void) {
    this.#report = report
  }

  begin(engine: Engine | undefined, id: PreparationId, terms: Preparation, owner: Owner): void {
    const prepare = engine?.kind === "text" ? engine.prepare : undefined
    if (prepare === undefined) return this.#report({ id, error: failed("the engine prepares nothing") })
    const fiber = Effect.runFork(prepare(terms, owner))
    this.#running.set(id, fiber)
    fiber.addObserver((exit) => {
      const wanted = this.#running.delete(id)
      if (Exit.isSuccess(exit)) {
        if (!wanted) return exit.value.release()
        this.#prepared.set(id, exit.value)
        this.#report({ id })
      } else if (wanted) this.#report({ id, error: toWireError(exit.cause) })
    })
  }

  /** What was prepared. From now on its caller releases it. */
  take(id: PreparationId | undefined): Prepared | undefined {
    if (id === undefined) return undefined
    const prepared = this.#prepared.get(id)
    this.#prepared.delete(id)
    return prepared
  }

  discard(id: PreparationId): void {
    this.take(id)?.release()
    const fiber = this.#running.get(id)
    this.#running.delete(id)
    fiber?.interruptUnsafe()
  }

  discardAll(): void {
    for (const id of [...this.#prepared.keys(), ...this.#running.keys()]) this.discard(id)
  }
}

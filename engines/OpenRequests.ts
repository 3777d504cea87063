// The requests that an engine computes, and its flow control: a request pauses while its reader is too slow, and all of them
// pause while the gateway has too many step messages to process.
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { NumberedMap } from "#domain/queues/UnorderedSet.ts"
import type { EngineError } from "./protocol/Engine.ts"
import type { RequestId } from "./protocol/EngineProtocol.ts"

interface OpenRequest {
  fiber: Fiber.Fiber<unknown, EngineError> | undefined
  paused: boolean
  readonly gate: Latch.Latch
}

/**
 * Most step messages that were sent and not acknowledged. The fastest engine here (the fake one: 1,000 steps a second,
 * measured) sends as many in a quarter of a second, so a gateway that is not overloaded never reaches it.
 */
const mostUnacknowledged = 256

export class OpenRequests {
  readonly #byId = new NumberedMap<OpenRequest>()
  /** Steps sent and not acknowledged. If the gateway falls behind, its engines pause, so messages do not pile up. */
  #unacknowledged = 0
  congested = false

  get size(): number {
    return this.#byId.size
  }

  begin(id: RequestId): OpenRequest {
    const entry: OpenRequest = { fiber: undefined, paused: false, gate: Latch.makeUnsafe(!this.congested) }
    this.#byId.set(id, entry)
    return entry
  }

  end(id: RequestId): void {
    this.#byId.delete(id)
  }

  cancel(id: RequestId): void {
    this.#byId.get(id)?.fiber?.interruptUnsafe()
  }

  fibers(): ReadonlyArray<Fiber.Fiber<unknown, EngineError>> {
    return this.#byId.values().flatMap(({ fiber }) => (fiber === undefined ? [] : [fiber]))
  }

  /** The reader of a request is too slow, or is ready again. */
  setPaused(id: RequestId, paused: boolean): void {
    const entry = this.#byId.get(id)
    if (entry !== undefined) entry.paused = paused
    this.#setGates()
  }

  /** Step messages were sent (positive), or acknowledged by the gateway (negative). */
  countSteps(change: number): void {
    this.#unacknowledged += change
    const now = this.congested
      ? this.#unacknowledged > mostUnacknowledged / 2
      : this.#unacknowledged >= mostUnacknowledged
    if (now === this.congested) return
    this.congested = now
    this.#setGates()
  }

  #setGates(): void {
    for (const { gate, paused } of this.#byId.values())
      paused || this.congested ? gate.closeUnsafe() : gate.openUnsafe()
  }
}

// Collects what happens to all requests in one tick of the engine's event loop and sends it as one message. A decode step
// advances all sequences at once; one message a step, not one a token, keeps the way to the gateway cheap.
import type { EndEvent, RequestId, StartedEvent, Step, WireError } from "./EngineProtocol.ts"
import { type Packer, packings } from "./Packing.ts"
import type { End, EngineKind, Started, Unit } from "./Verbs.ts"

export class StepBatch<K extends EngineKind> {
  #started: Array<StartedEvent<K>> = []
  readonly #units: Packer<K>
  #ended: Array<EndEvent<K>> = []
  #scheduled = false
  readonly #send: (message: Step<K>) => void

  constructor(kind: K, send: (message: Step<K>) => void) {
    this.#units = packings[kind].packer()
    this.#send = send
  }

  onStarted(id: RequestId, started: Started<K>): void {
    this.#started.push({ id, started })
    this.#schedule()
  }

  onUnit(id: RequestId, unit: Unit<K>): void {
    this.#units.add(id, unit)
    this.#schedule()
  }

  onEnd(id: RequestId, end: End<K>): void {
    this.#ended.push({ id, end })
    this.#schedule()
  }

  onError(id: RequestId, error: WireError): void {
    this.#ended.push({ id, error })
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    // The check phase comes after all promise continuations of the finished decode step have run.
    setImmediate(() => this.flush())
  }

  flush(): void {
    this.#scheduled = false
    const units = this.#units.take()
    const ended = this.#ended
    const started = this.#started
    if (units === undefined && started.length === 0 && ended.length === 0) return
    // Fields are added one by one: an empty list or a spread would cost every message more than the fields themselves.
    const step: { -readonly [F in keyof Step<K>]: Step<K>[F] } = { type: "step" }
    if (started.length > 0) {
      step.started = started
      this.#started = []
    }
    if (units !== undefined) step.units = units
    if (ended.length > 0) {
      step.ended = ended
      this.#ended = []
    }
    this.#send(step)
  }
}

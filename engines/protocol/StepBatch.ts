// Collects what happened to all requests in one turn of the engine's event loop and sends it as one message.
// A decode step advances every sequence at once; one message a step instead of one a token is what keeps the
// hop to the gateway cheap. Used by engineMain alone.
import type { TextDelta } from "./Engine.ts"
import { EventKind, type FromEngine, type RequestId } from "./EngineProtocol.ts"

export class StepBatch {
  private events: Array<unknown> = []
  private scheduled = false
  private readonly send: (message: FromEngine) => void

  constructor(send: (message: FromEngine) => void) {
    this.send = send
  }

  add(id: RequestId, kind: EventKind, data: unknown): void {
    this.events.push(id, kind, data)
    this.schedule()
  }

  addText(id: RequestId, { completionTokens, text }: TextDelta): void {
    this.events.push(id, EventKind.text, text, completionTokens)
    this.schedule()
  }

  private schedule(): void {
    if (this.scheduled) return
    this.scheduled = true
    // The check phase comes after every promise continuation of the finished decode step has run.
    setImmediate(() => this.flush())
  }

  flush(): void {
    this.scheduled = false
    if (this.events.length === 0) return
    const events = this.events
    this.events = []
    this.send({ t: "step", events })
  }
}

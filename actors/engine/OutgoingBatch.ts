// Collects what the gateway sends to one engine in a tick of its event loop and passes it on as one list, in order.
// Requests of many connections arrive in the same tick (9 of 16 connections under load), and each write to an engine's
// pipe is a system call. StepBatch does the same in the other direction.

/** More messages than this are sent at once: an upper bound of what serializing one list takes. A guess. */
const mostMessages = 64

export class OutgoingBatch<Message> {
  #messages: Array<Message> = []
  readonly #write: (messages: ReadonlyArray<Message>) => void

  constructor(write: (messages: ReadonlyArray<Message>) => void) {
    this.#write = write
  }

  readonly send = (message: Message): void => {
    const count = this.#messages.push(message)
    if (count === mostMessages) this.#flush()
    else if (count === 1) setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    const messages = this.#messages
    if (messages.length === 0) return
    this.#messages = []
    this.#write(messages)
  }
}

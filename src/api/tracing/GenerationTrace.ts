// One generation of a completions socket for traces: inside the socket's session, with its tokens and how it ended.
// Exists only if traces are exported. Never holds a prompt or a text.
import { Effect } from "effect"
import { type EdgeError, isRefusal } from "#domain/wire/Failures.ts"
import { isRequestId } from "#domain/wire/RequestId.ts"
import type { GenerateEnd, TextDelta } from "#engines/protocol/Engine.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import type { TracedWork } from "#http/TracedWork.ts"
import type { SessionTrace } from "./SessionTrace.ts"

export class GenerationTrace {
  readonly #session: SessionTrace
  readonly #work: TracedWork
  /** The client's id, if it is as short and plain as a request's must be. */
  readonly #id: string | undefined
  #outcome = "cancelled"
  #failed = false
  #inputTokens = 0
  #outputTokens = 0

  constructor(session: SessionTrace, id: string | number) {
    session.parts++
    this.#session = session
    this.#work = session.work.begin("generation")
    this.#id = isRequestId(String(id)) ? String(id) : undefined
  }

  /** The prompt's tokens, once the engine has accepted it. */
  accepted(promptTokens: number): void {
    this.#inputTokens = promptTokens
  }

  told({ completionTokens, text }: TextDelta): void {
    this.#outputTokens = completionTokens
    if (text !== "") this.#session.deltas++
  }

  ended({ completionTokens, finishReason }: GenerateEnd): void {
    this.#outputTokens = completionTokens
    this.#outcome = finishReason
    this.#work.engineEnded()
  }

  refused(error: EdgeError): void {
    this.#outcome = error._tag
    this.#failed = !isRefusal(error)
  }

  /** The span of the generation: it has the steps that the model's run records. */
  follow<A, E, R>(generation: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return generation.pipe(
      Effect.provideService(CurrentRequest, this.#work.notes),
      Effect.ensuring(Effect.sync(() => this.#end())),
    )
  }

  #end(): void {
    this.#session.inputTokens += this.#inputTokens
    this.#session.outputTokens += this.#outputTokens
    this.#work.end(
      {
        "edgewise.request_id": this.#work.notes.requestId,
        "edgewise.generation_id": this.#id,
        "edgewise.outcome": this.#outcome,
        "edgewise.input_tokens": this.#inputTokens,
        "edgewise.output_tokens": this.#outputTokens,
      },
      this.#failed,
    )
  }
}

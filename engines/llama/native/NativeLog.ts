// What llama.cpp says while a model loads, and load failures told with it. Called by Model and by the openers beside this file.
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import type { LlamaLogLevel } from "node-llama-cpp"
import { EngineError } from "../../protocol/Engine.ts"

export const loadFailed = (detail: string) => new EngineError({ reason: "LoadFailed", field: "", detail })

/** Longest detail taken from the library's own words. A guess: one line. */
const detailLength = 300

/** Status 1 is an evaluation that was ended on purpose, see Interrupt. */
const aborted = /(failed with error|compute status:) 1$|ret = 2$/

/**
 * What llama.cpp said went wrong; its exceptions only say that loading failed. Lines arrive in later ticks of the event
 * loop, and a line that arrives after the last listener has gone is printed to stderr, so both ends wait for them.
 */
export class NativeLog {
  readonly #path: string
  /** The first complaint is the cause, the others are consequences. */
  #first = ""

  constructor(path: string) {
    this.#path = path
  }

  /** Errors only, see Library: their lines hold names of tensors and counts, no prompt. The node reads what is printed. */
  readonly keep = (_level: LlamaLogLevel, message: string): void => {
    const line = message.trim()
    if (aborted.test(line)) return
    if (this.#first === "") this.#first = line
    process.stderr.write(`error: llama.cpp: ${line}\n`)
  }

  /** Until the lines on their way have arrived: one tick for the native queue, one for the library's. */
  async settled(): Promise<void> {
    for (let tick = 0; tick < 2; tick++) await new Promise((resolve) => setImmediate(resolve))
  }

  /** `run`, its failure told with what the native side said. The file's name stands for its path. */
  attempt<A>(what: string, run: () => Promise<A>): Effect.Effect<A, EngineError> {
    const withWords = async (cause: unknown) => {
      await this.settled()
      const said = cause instanceof Error ? cause.message : String(cause)
      const detail = [what, said, this.#first].filter((part) => part !== "").join(": ")
      const named = detail.replaceAll(this.#path, basename(this.#path))
      return loadFailed(named.replaceAll(/\s+/g, " ").slice(0, detailLength))
    }
    return Effect.callback((resume) => {
      run().then(
        (value) => resume(Effect.succeed(value)),
        (cause) => withWords(cause).then((error) => resume(Effect.fail(error))),
      )
    })
  }
}

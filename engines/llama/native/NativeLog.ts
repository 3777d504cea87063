// Collects llama.cpp's log while a model loads, and adds its first error to a load failure.
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import type { LlamaLogLevel } from "node-llama-cpp"
import { type EngineError, loadFailed } from "../../protocol/Engine.ts"

/** Most characters of a message from the library. A guess: one line. */
const detailLength = 300

/** Status 1 is an evaluation that was ended on purpose, see Interrupt. */
const aborted = /(failed with error|compute status:) 1$|ret = 2$/

/**
 * The reason that llama.cpp logged; its exceptions only say that loading failed. Log lines arrive in later ticks of the event
 * loop, and a line that arrives after the last listener was removed is printed to stderr, so both ends wait for them.
 */
export class NativeLog {
  readonly #path: string
  /** The first error is the cause, later ones are consequences. */
  #first = ""

  constructor(path: string) {
    this.#path = path
  }

  /** Errors only, see Library: they contain names of tensors and counts, no prompt. The node logs what is printed here. */
  readonly keep = (_level: LlamaLogLevel, message: string): void => {
    const line = message.trim()
    if (aborted.test(line)) return
    if (this.#first === "") this.#first = line
    process.stderr.write(`error: llama.cpp: ${line}\n`)
  }

  /** Waits until pending lines have arrived: one tick for the native queue, one for the library's. */
  async settled(): Promise<void> {
    for (let tick = 0; tick < 2; tick++) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Runs `run`; a failure carries the library's logged reason. Paths are shortened to file names. */
  attempt<A>(what: string, run: () => Promise<A>): Effect.Effect<A, EngineError> {
    const withWords = async (cause: unknown) => {
      await this.settled()
      const said = cause instanceof Error ? cause.message : String(cause)
      const detail = [what, said, this.#first].filter((part) => part !== "").join(": ")
      const named = detail.replaceAll(this.#path, basename(this.#path))
      return loadFailed("", named.replaceAll(/\s+/g, " ").slice(0, detailLength))
    }
    return Effect.callback((resume) => {
      run().then(
        (value) => resume(Effect.succeed(value)),
        (cause) => withWords(cause).then((error) => resume(Effect.fail(error))),
      )
    })
  }
}

// Splits the output of a process into lines of bounded length, and finds the level that a line shows. Pure.
import type { LogLevel } from "./OperatorLog.ts"

/** Bytes kept of a line; the rest of the line is dropped. */
const maxLineBytes = 1_000

const lineFeed = 10

/** Splits the chunks of one stream into lines. Keeps at most one line's bytes between chunks. */
export class LineSplitter {
  #parts: Array<Buffer> = []
  #keptBytes = 0
  readonly #onLine: (line: Buffer) => void

  /** `onLine` gets each non-empty line without its line end, cut to 1,000 bytes. */
  constructor(onLine: (line: Buffer) => void) {
    this.#onLine = onLine
  }

  push(chunk: Buffer): void {
    let from = 0
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
      this.#keep(chunk, from, at)
      this.end()
      from = at + 1
    }
    this.#keep(chunk, from, chunk.length)
  }

  /** The stream has ended: delivers what came after the last line end as a line. */
  end(): void {
    if (this.#keptBytes === 0) return
    const line = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)
    this.#parts = []
    this.#keptBytes = 0
    this.#onLine(line)
  }

  #keep(chunk: Buffer, from: number, to: number): void {
    const until = Math.min(to, from + maxLineBytes - this.#keptBytes)
    if (until <= from) return
    // A copy: otherwise a few bytes would keep a chunk of 64 KB in memory.
    this.#parts.push(Buffer.from(chunk.subarray(from, until)))
    this.#keptBytes += until - from
  }
}

/**
 * Patterns of native libraries and runtimes: ONNX Runtime's `[E:onnxruntime…]`, assertions of ggml and C++, Node's
 * fatal errors and exceptions.
 */
const errorLine =
  /^\[[EF]:|^\s*(?:fatal|panic|uncaught|terminate called|what\(\):)|^(?:\w+ )?error\b|^\w*(?:Error|Exception)\b|GGML_ASSERT|assert\w* .*fail|\bfatal error\b|\bAborted\b|out of memory|: error: /i
const warningLine = /^\[W:|^\s*\(?(?:node:\d+\) )?warn|\bwarning\b:/i

/** The level that a line shows; other output of libraries is `debug`. */
export const outputLevel = (text: string): LogLevel =>
  errorLine.test(text) ? "error" : warningLine.test(text) ? "warn" : "debug"

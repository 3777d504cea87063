// Writes lines to a file descriptor without blocking: entries wait in a bounded queue, are formatted in batches and
// written by the thread pool. If the reader is too slow, lines are dropped and counted.
import { writeSync, write as writeToFd } from "node:fs"
import { Effect, type Scope } from "effect"

interface LineCounts {
  logLines: number
  logLinesDropped: number
}

/** Longest queue, in lines: 0.8 s of 10,000 requests a second, which is more than a node serves. A guess. */
const capacity = 8_192
/** How long lines wait to be written together. */
const gatherMs = 50
/** Lines formatted at a time: about 0.5 ms of the event loop. A guess. */
const batchLines = 256
/** Pause before a write is repeated when the descriptor takes no data. */
const retryMs = 50
/** Longest wait for the last lines when the scope closes. */
const lastWriteMs = 1_000

type Write = (fd: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void) => void

const fsWrite: Write = (fd, bytes, done) =>
  writeToFd(fd, bytes, 0, bytes.length, null, (error, written) => done(error, written))

export class LineWriter<Entry> {
  readonly #fd: number
  readonly #format: (entry: Entry) => string
  readonly #counts: LineCounts
  readonly #write: Write
  #waiting: Array<Entry> = []
  #writing = false
  #timer: NodeJS.Timeout | undefined
  #broken = false
  #idle: Array<() => void> = []

  private constructor(fd: number, format: (entry: Entry) => string, counts: LineCounts, write: Write) {
    this.#fd = fd
    this.#format = format
    this.#counts = counts
    this.#write = write
  }

  /** Closing the scope writes the remaining lines, for at most `farewellMs`. */
  static make<Entry>(
    fd: number,
    format: (entry: Entry) => string,
    counts: LineCounts,
    write: Write = fsWrite,
  ): Effect.Effect<LineWriter<Entry>, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => {
        const writer = new LineWriter(fd, format, counts, write)
        process.once("exit", writer.#atExit)
        return writer
      }),
      (writer) =>
        writer.drained.pipe(
          Effect.timeoutOption(lastWriteMs),
          Effect.andThen(Effect.sync(() => void process.removeListener("exit", writer.#atExit))),
        ),
    )
  }

  /** Queues a line, or counts it as dropped. */
  push(entry: Entry): void {
    if (this.#broken || this.#waiting.length >= capacity) {
      this.#counts.logLinesDropped++
      return
    }
    this.#waiting.push(entry)
    this.#timer ??= setTimeout(this.#flush, gatherMs)
  }

  /** Completes when all lines so far have been written or dropped. */
  get drained(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.#idle.push(() => resume(Effect.void))
      this.#flush()
    })
  }

  readonly #flush = (): void => {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#writing) return
    if (this.#waiting.length === 0 || this.#broken) {
      for (const wake of this.#idle.splice(0)) wake()
      return
    }
    const batch = this.#waiting.slice(0, batchLines)
    this.#waiting = this.#waiting.slice(batchLines)
    this.#writing = true
    this.#send(Buffer.from(batch.map((entry) => `${this.#format(entry)}\n`).join("")), batch.length)
  }

  #send(bytes: Uint8Array, lines: number): void {
    this.#write(this.#fd, bytes, (error, written) => {
      if (error !== null && (error as NodeJS.ErrnoException).code === "EAGAIN") {
        setTimeout(() => this.#send(bytes, lines), retryMs)
        return
      }
      if (error === null && written < bytes.length) return this.#send(bytes.subarray(written), lines)
      this.#writing = false
      if (error === null) this.#counts.logLines += lines
      else {
        // The reader has closed the pipe.
        this.#broken = true
        this.#counts.logLinesDropped += lines + this.#waiting.length
        this.#waiting = []
      }
      this.#flush()
    })
  }

  /** The process exits without closing its scopes: tries once, synchronously, to write what is queued. */
  readonly #atExit = (): void => {
    if (this.#waiting.length === 0 || this.#broken) return
    try {
      writeSync(this.#fd, this.#waiting.map((entry) => `${this.#format(entry)}\n`).join(""))
    } catch {
      // The pipe is full or closed; the lines are lost.
    }
  }
}

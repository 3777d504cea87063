// The output of one model's engine and the node's events about it: the last 200 lines, kept while the node runs, across
// restarts and loads. A flood costs a bounded number of lines a second; the rest is counted.
import { StringDecoder } from "node:string_decoder"
import type { LogLevel } from "#domain/process/OperatorLog.ts"
import { LineSplitter, outputLevel } from "#domain/process/OutputLines.ts"
import { plainLine } from "#domain/process/PlainLine.ts"

/** `node` marks events of the node about this engine: starts, crashes, refused loads. */
type OutputStream = "stdout" | "stderr" | "node"

interface OutputLine {
  /** Counts up from 1 and never repeats, so that a reader can request only newer lines. */
  readonly seq: number
  /** Unix time, milliseconds. */
  readonly atMs: number
  readonly stream: OutputStream
  readonly level: LogLevel
  readonly text: string
}

const ringLines = 200
/** Longest line, characters. A guess: the length of a library's error with a path. */
const maxLineCharacters = 500
/** Lines of an engine that are kept per second. A guess: a crash prints some dozens. */
const linesASecond = 100

const nowMs = (): number => Math.round(performance.timeOrigin + performance.now())

export class EngineOutput {
  readonly #ring: Array<OutputLine> = []
  readonly #onLine: (line: OutputLine) => void
  #seq = 0
  #secondFromMs = 0
  #inSecond = 0
  #dropped = 0

  /** `onLine` gets every kept line of an engine, as it arrives; must be quick and must not throw. */
  constructor(onLine: (line: OutputLine) => void = () => {}) {
    this.#onLine = onLine
  }

  /** Kept lines, oldest first; only those after `seq` if it is given. */
  lines(after = 0): ReadonlyArray<OutputLine> {
    return this.#ring.filter(({ seq }) => seq > after)
  }

  /** An event of the node. */
  note(level: LogLevel, text: string): void {
    this.#keep("node", level, plainLine(text, maxLineCharacters))
  }

  /** The last error that the engine printed within `withinMs`, as part of a reason; of those that `like` matches, if it is given. */
  lastError(withinMs: number, like = /^/): string | undefined {
    const sinceMs = nowMs() - withinMs
    return this.#ring.findLast(
      ({ atMs, level, stream, text }) =>
        stream !== "node" && level === "error" && atMs >= sinceMs && like.test(text),
    )?.text
  }

  /** Receives one process's output. `end` adds unfinished lines. */
  open(): {
    readonly take: (stream: "stdout" | "stderr", chunk: Buffer) => void
    readonly end: () => void
  } {
    const splitters = { stdout: this.#splitter("stdout"), stderr: this.#splitter("stderr") }
    return {
      take: (stream, chunk) => splitters[stream].push(chunk),
      end: () => {
        splitters.stdout.end()
        splitters.stderr.end()
      },
    }
  }

  #splitter(stream: "stdout" | "stderr"): LineSplitter {
    return new LineSplitter((bytes) => {
      if (!this.#admit()) return
      // A character that was cut at the end is left out and not replaced by U+FFFD.
      const text = plainLine(new StringDecoder("utf8").write(bytes), maxLineCharacters)
      if (text !== "") this.#onLine(this.#keep(stream, outputLevel(text), text))
    })
  }

  #admit(): boolean {
    const atMs = performance.now()
    if (atMs - this.#secondFromMs >= 1_000) {
      this.#secondFromMs = atMs
      this.#inSecond = 0
      if (this.#dropped > 0)
        this.note("warn", `${this.#dropped} lines were left out: the engine printed too many`)
      this.#dropped = 0
    }
    if (this.#inSecond >= linesASecond) {
      this.#dropped++
      return false
    }
    this.#inSecond++
    return true
  }

  #keep(stream: OutputStream, level: LogLevel, text: string): OutputLine {
    const line = { seq: ++this.#seq, atMs: nowMs(), stream, level, text }
    this.#ring.push(line)
    if (this.#ring.length > ringLines) this.#ring.shift()
    return line
  }
}

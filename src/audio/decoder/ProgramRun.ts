// One run of the machine's `ffmpeg` on one file, as a child of the decoder process: the sandbox of its parent holds for
// it, and so do the kernel's limits. Its samples come from descriptor 1 and facts about the source from descriptor 3,
// both read only as fast as they are taken.
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import type { Readable } from "node:stream"

/** FFmpeg's messages quote the file: they are only searched, never passed on. Beyond this they are not kept. */
const maxMessageBytes = 16_384
/** The longest facts: some lines of FFmpeg's `framecrc` format, one of them the name of a channel layout. */
const maxFactsBytes = 16_384

/** How a run ended. */
export interface RunEnd {
  /** Null after a signal. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

interface Usage {
  /** CPU time of the run, user and system. */
  readonly cpuMs: number
  readonly residentBytes: number
}

/** Clock ticks of /proc/<pid>/stat: 100 a second on every Linux. */
const tickMs = 10

const running = new Set<ChildProcess>()
// A run outlives its parent otherwise: one that reads a damaged file may never write, and so not notice it.
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

export class ProgramRun {
  readonly #child: ChildProcess
  readonly ended: Promise<RunEnd>
  readonly samples: Readable
  /** What it wrote to descriptor 3, as soon as `isComplete` holds for it, or at its end. */
  readonly facts: Promise<string>
  #messages = ""
  #damages = 0

  constructor(program: string, args: ReadonlyArray<string>, isComplete: (facts: string) => boolean) {
    const child = spawn(program, [...args], { env: {}, stdio: ["ignore", "pipe", "pipe", "pipe"] })
    this.#child = child
    running.add(child)
    this.ended = new Promise((resolve, reject) => {
      child.once("error", reject)
      child.once("close", (code, signal) => {
        running.delete(child)
        resolve({ code, signal })
      })
    })
    // Awaited later, and only if the run is not given up before.
    this.ended.catch(() => running.delete(child))
    this.samples = child.stdout as Readable
    const messages = child.stderr as Readable
    messages.setEncoding("latin1").on("data", (text: string) => this.#hear(text))
    this.facts = new Promise((resolve) => {
      const stream = child.stdio[3] as Readable
      let read = ""
      stream.setEncoding("latin1").on("data", (text: string) => {
        if (read.length < maxFactsBytes) read += text
        if (isComplete(read)) resolve(read)
      })
      stream.once("close", () => resolve(read))
      child.once("error", () => resolve(""))
    })
  }

  /** Errors that FFmpeg reported and went on after. */
  get damages(): number {
    return this.#damages
  }

  said(words: string): boolean {
    return this.#messages.includes(words)
  }

  /** Undefined where the system does not show it, or after the end. */
  usage(): Usage | undefined {
    try {
      const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "latin1")
      // The name in brackets may contain spaces. Fields 14 and 15 are times, counted from the state, field 3.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      const status = readFileSync(`/proc/${this.#child.pid}/status`, "latin1")
      const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
      return {
        cpuMs: (Number(fields[11]) + Number(fields[12])) * tickMs,
        residentBytes: kilobytes * 1024,
      }
    } catch {
      return undefined
    }
  }

  /** Ends the run and waits until it has ended. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL")
    // Unread samples would keep the pipe open.
    this.samples.destroy()
    await this.ended.catch(() => {})
  }

  #hear(text: string): void {
    const kept = this.#messages.length
    if (kept < maxMessageBytes) this.#messages += text.slice(0, maxMessageBytes - kept)
    // Decoders of other tracks are refused on purpose.
    for (const line of text.split("\n")) if (line !== "" && !line.includes("on whitelist")) this.#damages++
  }
}

// One decoder process as the gateway sees it: start, hand it a file, take its messages, kill it. Called by Decoder
// alone, which decides who gets it and for how long. Nothing native is loaded on this side.
import { type ChildProcess, fork } from "node:child_process"
import { getPriority, setPriority } from "node:os"
import { fileURLToPath } from "node:url"
import { compiledCodeEnvironment } from "#domain/CompiledCode.ts"
import type { DecodeRequest, FromDecoder, ToDecoder } from "./decoder/DecoderWire.ts"

/** A message of the process, or the end of it. */
export type DecoderEvent = FromDecoder | { readonly t: "died"; readonly detail: string }

/** Decodes after which a process is not used again: native heaps fragment, and a fresh one costs 0.2 s. A guess. */
const MAX_DECODES = 200

/** @param compiled where it may keep compiled code, see domain/CompiledCode */
export const startDecoder = (compiled?: string): ChildProcess =>
  fork(fileURLToPath(new URL("./decoder/decoderMain.ts", import.meta.url)), [], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    // No credential of the gateway is in reach of whoever takes this process over.
    env: compiledCodeEnvironment(compiled),
    serialization: "advanced",
    // FFmpeg's own lines may quote what is in a file.
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  })

/**
 * How much nicer than the gateway a decoder is: a short answer goes before a file that is decoded ahead of its being heard.
 * A decoder still gets a tenth of a core that others want all of, which is tens of times real time.
 */
const NICER = 10
const NICEST = 19

const stepBack = (pid: number | undefined): void => {
  if (pid === undefined) return
  try {
    setPriority(pid, Math.min(NICEST, getPriority() + NICER))
  } catch {
    // It has ended already, which is told by its own event.
  }
}

export class DecoderProcess {
  readonly #child: ChildProcess
  #listener: ((event: DecoderEvent) => void) | undefined
  #decodes = 0
  #busy = false
  #dead = false
  readonly #onDeath: () => void

  constructor(onDeath: () => void, spawn: () => ChildProcess = startDecoder) {
    this.#onDeath = onDeath
    this.#child = spawn()
    stepBack(this.#child.pid)
    this.#child.on("message", (message: FromDecoder) => {
      if (message.t === "up") return
      // After these the process waits for its next file. One that had to be stopped is not trusted with another.
      if (
        message.t === "end" ||
        message.t === "unwritable" ||
        (message.t === "rejected" && message.reason !== "TooCostly")
      ) {
        this.#busy = false
      }
      this.#listener?.(message)
    })
    this.#child.on("error", (cause) => this.#died(`it could not be started or reached (${cause.name})`))
    this.#child.on("exit", (code, signal) => this.#died(`it ended (${signal ?? `exit ${code}`})`))
  }

  /** Whether it may be given another file. */
  get reusable(): boolean {
    return !this.#dead && !this.#busy && this.#decodes < MAX_DECODES
  }

  /** Begins a decode; all that follows goes to `listener`, "died" at the latest. */
  decode(request: DecodeRequest, listener: (event: DecoderEvent) => void): void {
    this.#decodes++
    this.#busy = true
    this.#listener = listener
    if (this.#dead) listener({ t: "died", detail: "it had ended before" })
    else this.#send({ t: "decode", request })
  }

  /** One chunk was taken. */
  acknowledge(): void {
    this.#send({ t: "ack" })
  }

  /** Samples before this one may be written to the ring. */
  room(until: number): void {
    this.#send({ t: "room", until })
  }

  /** Nobody listens any more. */
  detach(): void {
    this.#listener = undefined
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }

  #send(message: ToDecoder): void {
    // A failure to write is the process's end, which is told by its own event.
    if (!this.#dead && this.#child.connected) this.#child.send(message, () => {})
  }

  #died(detail: string): void {
    if (this.#dead) return
    this.#dead = true
    this.#listener?.({ t: "died", detail })
    this.#onDeath()
  }
}

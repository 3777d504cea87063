// One decoder process as the gateway sees it: start, hand it a file, take its messages, kill it. Called by Decoder
// alone, which decides who gets it and for how long. Nothing native is loaded on this side.
import { type ChildProcess, fork } from "node:child_process"
import { getPriority, setPriority } from "node:os"
import { fileURLToPath } from "node:url"
import { ConfinedFolder, HandOverFailed } from "#confine/ConfinedFolder.ts"
import { launch } from "#confine/Launch.ts"
import type { Confinement } from "#domain/process/Confinement.ts"
import type { ProcessHome } from "#domain/process/ProcessHome.ts"
import type { DecodeRequest, FromDecoder, ToDecoder } from "./decoder/DecoderWire.ts"

/** A message of the process, or the end of it. */
export type DecoderEvent = FromDecoder | { readonly t: "died"; readonly detail: string }

/** Decodes after which a process is not used again: native heaps fragment, and a fresh one costs 0.2 s. A guess. */
const MAX_DECODES = 200

/**
 * What a decoder may do. It starts with 85 MB of private memory and needs up to 150 MB (measured); what is left is for the
 * index of a long M4A file, 24 bytes a frame, and less than a header may talk it into. CPU time is bounded for each file;
 * this is the bound of all that a process decodes in its life.
 */
export const decoderConfinement = (folder: string, home: ProcessHome | undefined): Confinement => ({
  limits: {
    data: 320 * 1024 * 1024,
    cpuSeconds: MAX_DECODES * 120,
    openFiles: 64,
    // A ring has 16 MiB.
    fileBytes: 32 * 1024 * 1024,
  },
  grants: [
    { path: folder, access: "fill" },
    ...(home?.rings === undefined || home.links ? [] : [{ path: home.rings, access: "fill" } as const]),
  ],
  sockets: "none",
})

/** @param room its own folder */
export const startDecoder = (folder: string, home?: ProcessHome): ChildProcess => {
  const { env, execArgv, execPath } = launch(decoderConfinement(folder, home), [
    "--disable-warning=ExperimentalWarning",
  ])
  return fork(fileURLToPath(new URL("./decoder/decoderMain.ts", import.meta.url)), [], {
    execPath,
    execArgv,
    // No credential of the gateway is in reach of code that takes this process over. No compiled code either: it would
    // spare less than 10 ms of a start (measured).
    env: { ...env, TMPDIR: folder },
    serialization: "advanced",
    // FFmpeg's own lines may quote what is in a file.
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  })
}

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
  readonly #folder: ConfinedFolder
  readonly #child: ChildProcess
  #listener: ((event: DecoderEvent) => void) | undefined
  #decodes = 0
  #busy = false
  #dead = false
  readonly #onDeath: () => void

  /** @param spawn starts the process, given its own folder */
  constructor(
    onDeath: () => void,
    spawn: (folder: string) => ChildProcess = startDecoder,
    home?: ProcessHome,
  ) {
    this.#onDeath = onDeath
    this.#folder = new ConfinedFolder(home)
    this.#child = spawn(this.#folder.path)
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
        void this.#folder.takeBack()
      }
      this.#listener?.(message)
    })
    this.#child.on("error", (cause) => this.#died(`it could not be started or reached (${cause.name})`))
    this.#child.on("exit", (code, signal) => this.#died(`it ended (${signal ?? `exit ${code}`})`))
  }

  /** Undefined where it could not be started, and once it has ended. */
  get pid(): number | undefined {
    return this.#dead ? undefined : this.#child.pid
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
    else void this.#begin(request)
  }

  /** Hands the files over first: the process can open no others. */
  async #begin(request: DecodeRequest): Promise<void> {
    try {
      await this.#folder.takeBack()
      const path = await this.#folder.give(request.path)
      const ring = request.ring && { ...request.ring, path: await this.#folder.share(request.ring.path) }
      this.#send({ t: "decode", request: { ...request, path, ...(ring && { ring }) } })
    } catch (cause) {
      const code = cause instanceof HandOverFailed ? cause.code : "unknown"
      this.#busy = false
      this.#listener?.({ t: "unwritable", code })
    }
  }

  /** One chunk was taken. */
  acknowledge(): void {
    this.#send({ t: "ack" })
  }

  /** Samples before this one may be written to the ring. */
  room(until: number): void {
    this.#send({ t: "room", until })
  }

  /** Its messages go nowhere from now on. */
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
    void this.#folder.remove()
    this.#listener?.({ t: "died", detail })
    this.#onDeath()
  }
}

// The gateway's side of one decoder process: starts it, hands it a file, receives its messages, kills it. No native
// code is loaded on this side.
import { type ChildProcess, fork } from "node:child_process"
import { getPriority, setPriority } from "node:os"
import { fileURLToPath } from "node:url"
import { ConfinedFolder, HandOverFailed } from "#confine/ConfinedFolder.ts"
import { launch } from "#confine/Launch.ts"
import type { PictureRequest } from "#domain/pictures/PictureRequest.ts"
import type { Confinement } from "#domain/process/Confinement.ts"
import type { ProcessHome } from "#domain/process/ProcessHome.ts"
import type { DecodeRequest, FromDecoder, ToDecoder } from "./decoder/DecoderWire.ts"

/** A message of the process, or its end. */
export type DecoderEvent = FromDecoder | { readonly t: "died"; readonly detail: string }

/** A process is replaced after this many decodes: native heaps fragment, and a new process costs 0.2 s. A guess. */
const MAX_DECODES = 200

/**
 * Limits and rights of a decoder. It starts with 85 MB of private memory and needs up to 150 MB (measured). The rest is
 * for the index of a long M4A file, 24 bytes per frame; a forged header cannot make it take more. The CPU limit here is
 * for the whole life of the process; each decode has its own.
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

/** @param folder its own folder */
export const startDecoder = (folder: string, home?: ProcessHome): ChildProcess => {
  const { env, execArgv, execPath } = launch(decoderConfinement(folder, home), [
    "--disable-warning=ExperimentalWarning",
  ])
  return fork(fileURLToPath(new URL("./decoder/decoderMain.ts", import.meta.url)), [], {
    execPath,
    execArgv,
    // The process gets no credential of the gateway, because a file may take it over. It gets no compile cache either,
    // which would save less than 10 ms of a start (measured).
    env: { ...env, TMPDIR: folder },
    serialization: "advanced",
    // FFmpeg's messages may quote content of the file.
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  })
}

/**
 * Added to the gateway's nice value: short requests take precedence over decoding ahead. A decoder still gets a tenth
 * of a core that other processes want completely, which decodes tens of times faster than real time.
 */
const NICE_ABOVE_GATEWAY = 10
const MAX_NICE = 19

const lowerPriority = (pid: number | undefined): void => {
  if (pid === undefined) return
  try {
    setPriority(pid, Math.min(MAX_NICE, getPriority() + NICE_ABOVE_GATEWAY))
  } catch {
    // It has ended already, which its exit event reports.
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
    lowerPriority(this.#child.pid)
    this.#child.on("message", (message: FromDecoder) => {
      if (message.t === "up") return
      // After these messages the process waits for its next file. A process that had to be stopped is not reused.
      if (
        message.t === "end" ||
        message.t === "picture" ||
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

  /** Undefined if it could not be started or has ended. */
  get pid(): number | undefined {
    return this.#dead ? undefined : this.#child.pid
  }

  /** True if it may be given another file. */
  get reusable(): boolean {
    return !this.#dead && !this.#busy && this.#decodes < MAX_DECODES
  }

  /** Starts a decode. `listener` gets all its events; the last one is "died" if the process ends. */
  decode(request: DecodeRequest, listener: (event: DecoderEvent) => void): void {
    this.#begin(listener, async () => {
      const path = await this.#folder.give(request.path)
      const ring = request.ring && { ...request.ring, path: await this.#folder.share(request.ring.path) }
      return { t: "decode", request: { ...request, path, ...(ring && { ring }) } }
    })
  }

  /** The same for a picture, which has one event. */
  decodePicture(request: PictureRequest, listener: (event: DecoderEvent) => void): void {
    this.#begin(listener, async () => {
      const path = await this.#folder.give(request.path)
      const into = await this.#folder.share(request.into)
      return { t: "decode-picture", request: { ...request, path, into } }
    })
  }

  #begin(listener: (event: DecoderEvent) => void, handOver: () => Promise<ToDecoder>): void {
    this.#decodes++
    this.#busy = true
    this.#listener = listener
    if (this.#dead) listener({ t: "died", detail: "it had ended before" })
    else void this.#ask(handOver)
  }

  /** Hands over the files first, because the process can open no others. */
  async #ask(handOver: () => Promise<ToDecoder>): Promise<void> {
    try {
      await this.#folder.takeBack()
      this.#send(await handOver())
    } catch (cause) {
      const code = cause instanceof HandOverFailed ? cause.code : "unknown"
      this.#busy = false
      this.#listener?.({ t: "unwritable", code })
    }
  }

  /** The reader has taken one chunk. */
  acknowledge(): void {
    this.#send({ t: "ack" })
  }

  /** Allows the process to write the samples before this one to the ring. */
  allowUntil(until: number): void {
    this.#send({ t: "allow", until })
  }

  /** Ignores its further messages. */
  detach(): void {
    this.#listener = undefined
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }

  #send(message: ToDecoder): void {
    // A failed write means that the process has ended, which its exit event reports.
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

// The gateway's side of one decoder process: starts it, hands it a file, receives its messages, kills it. No native
// code is loaded on this side.
import { type ChildProcess, fork } from "node:child_process"
import { readFileSync } from "node:fs"
import { getPriority, setPriority } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { codeRangeBytes } from "#confine/CodeRange.ts"
import { ConfinedFolder, HandOverFailed } from "#confine/ConfinedFolder.ts"
import { launch } from "#confine/Launch.ts"
import type { PictureRequest } from "#domain/pictures/PictureRequest.ts"
import type { Confinement } from "#domain/process/Confinement.ts"
import type { ProcessHome } from "#domain/process/ProcessHome.ts"
import type { DecodeRequest, DecoderProgram, FromDecoder, ToDecoder } from "./decoder/DecoderWire.ts"

/** A message of the process, or its end. */
export type DecoderEvent = FromDecoder | { readonly t: "died"; readonly detail: string }

/** The decoder of a process for which no other one was chosen. */
export const binding: DecoderProgram = { kind: "node-av" }

/** A process is replaced after this many decodes: native heaps fragment, and a new process costs 0.2 s. A guess. */
const maxDecodes = 200

/**
 * Limits and rights of a decoder. It starts with 85 MB of private memory and needs up to 150 MB (measured). The rest is
 * for the index of a long M4A file, 24 bytes per frame; a forged header cannot make it take more. The CPU limit here is
 * for the whole life of the process; each decode has its own. An `ffmpeg` program is a child of the process, for which all
 * of this holds again. V8's reservation for compiled code is added, because the kernel counts it.
 */
export const decoderConfinement = (
  folder: string,
  home: ProcessHome | undefined,
  program: DecoderProgram = binding,
): Confinement => ({
  limits: {
    data: 320 * 1024 * 1024 + codeRangeBytes(),
    cpuSeconds: maxDecodes * 120,
    openFiles: 64,
    // A ring has 16 MiB.
    fileBytes: 32 * 1024 * 1024,
  },
  grants: [
    { path: folder, access: "fill" },
    ...(home?.rings === undefined || home.links ? [] : [{ path: home.rings, access: "fill" } as const]),
    ...(program.kind === "ffmpeg"
      ? [
          { path: program.path, access: "run" } as const,
          // Of a program outside of /usr: the folder where its libraries are, if it has one.
          { path: join(dirname(dirname(program.path)), "lib"), access: "read" } as const,
        ]
      : []),
  ],
  sockets: "none",
})

/** @param folder its own folder */
export const startDecoder = (
  folder: string,
  home?: ProcessHome,
  program: DecoderProgram = binding,
): ChildProcess => {
  const { env, execArgv, execPath } = launch(decoderConfinement(folder, home, program), [
    "--disable-warning=ExperimentalWarning",
  ])
  const main = fileURLToPath(new URL("./decoder/decoderMain.ts", import.meta.url))
  return fork(main, [JSON.stringify(program)], {
    execPath,
    execArgv,
    // A process group of its own, so that the program that it runs can be killed with it.
    detached: program.kind === "ffmpeg",
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
const niceAboveGateway = 10
const maxNice = 19

const lowerPriority = (pid: number | undefined): void => {
  if (pid === undefined) return
  try {
    setPriority(pid, Math.min(maxNice, getPriority() + niceAboveGateway))
  } catch {
    // It has ended already, which its exit event reports.
  }
}

/** Kills the process and what it runs: a program would not notice the end of its parent before it writes. */
const killGroup = (child: ChildProcess): void => {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
  } catch {
    // It leads no group, or everything in the group has ended.
  }
  child.kill("SIGKILL")
}

/** Ids of the processes that a process has started. Empty where the system does not show them. */
const childrenOf = (pid: number): ReadonlyArray<number> => {
  try {
    const ids = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim()
    return ids === "" ? [] : ids.split(" ").map(Number)
  } catch {
    return []
  }
}

export class DecoderProcess {
  readonly #folder: ConfinedFolder
  readonly #child: ChildProcess
  #listener: ((event: DecoderEvent) => void) | undefined
  #decodes = 0
  #busy = false
  #dead = false
  /** From then on it is of no use, although messages that it has sent before still arrive. */
  #killed = false
  /** The hand-over of the files of the last decode. Never rejects. */
  #handedOver: Promise<void> = Promise.resolve()
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
      if (message.t === "up" || message.t === "absent") return
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

  /** Its id and those of the programs that it runs. */
  get pids(): ReadonlyArray<number> {
    const { pid } = this
    return pid === undefined ? [] : [pid, ...childrenOf(pid)]
  }

  /** True if it may be given another file. */
  get reusable(): boolean {
    return !this.#dead && !this.#killed && !this.#busy && this.#decodes < maxDecodes
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
    else this.#handedOver = this.#ask(handOver)
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

  /**
   * Removes the files of its decode from its folder: an upload that is deleted is in no folder then, even if the process still
   * runs. Not while another decode may begin.
   */
  async takeBack(): Promise<void> {
    await this.#handedOver
    await this.#folder.takeBack()
  }

  /** Ignores its further messages. */
  detach(): void {
    this.#listener = undefined
  }

  kill(): void {
    this.#killed = true
    if (!this.#dead) killGroup(this.#child)
  }

  #send(message: ToDecoder): void {
    // A failed write means that the process has ended, which its exit event reports.
    if (!this.#dead && this.#child.connected) this.#child.send(message, () => {})
  }

  #died(detail: string): void {
    if (this.#dead) return
    this.#dead = true
    // If it ended by itself, what it ran may go on.
    killGroup(this.#child)
    void this.#folder.remove()
    this.#listener?.({ t: "died", detail })
    this.#onDeath()
  }
}

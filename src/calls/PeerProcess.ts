// The gateway's side of the process of calls: starts it confined, sends it messages, receives its own. No native code is loaded on this side.
import { type ChildProcess, fork } from "node:child_process"
import { codeRangeBytes } from "#confine/CodeRange.ts"
import { ConfinedFolder } from "#confine/ConfinedFolder.ts"
import { launch } from "#confine/Launch.ts"
import type { Confinement } from "#domain/process/Confinement.ts"
import type { ProcessHome } from "#domain/process/ProcessHome.ts"
import type { FromPeers, PeerTerms, ToPeers } from "./PeerWire.ts"

/**
 * Limits and rights of the process. It starts with about 80 MB and takes a few MB a call; the rest is a guess. It needs UDP sockets, and
 * asks the kernel for the machine's addresses. Which ports and addresses it uses cannot be limited by the kernel's filters.
 */
const peerConfinement = (folder: string): Confinement => ({
  limits: { data: 1024 * 1024 * 1024 + codeRangeBytes(), openFiles: 256, fileBytes: 1024 * 1024 },
  grants: [{ path: folder, access: "fill" }],
  sockets: "datagrams",
})

interface PeerProcessTerms {
  readonly terms: PeerTerms
  readonly home: ProcessHome | undefined
  readonly onMessage: (message: FromPeers) => void
  /** `detail`: how it ended. */
  readonly onExit: (detail: string) => void
}

export class PeerProcess {
  readonly #child: ChildProcess
  readonly #folder: ConfinedFolder
  readonly #onExit: (detail: string) => void
  #unsent: Array<ToPeers> = []
  #hasEnded = false

  constructor({ home, onExit, onMessage, terms }: PeerProcessTerms) {
    this.#onExit = onExit
    this.#folder = new ConfinedFolder(home)
    const { path } = this.#folder
    const { env, execArgv, execPath } = launch(peerConfinement(path), [
      "--disable-warning=ExperimentalWarning",
    ])
    this.#child = fork(new URL("./peer/peerMain.ts", import.meta.url), [JSON.stringify(terms)], {
      execPath,
      execArgv,
      // No credential of the gateway: a caller may take the process over.
      env: { ...env, TMPDIR: path },
      serialization: "advanced",
      // The library's messages may quote what a caller sends.
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    })
    this.#child.on("message", (messages: ReadonlyArray<FromPeers>) => {
      if (this.#hasEnded) return
      for (const message of messages) onMessage(message)
    })
    this.#child.on("error", (cause) => this.#ended(`it could not be started or reached (${cause.name})`))
    this.#child.on("exit", (code, signal) => this.#ended(`it ended (${signal ?? `exit ${code}`})`))
  }

  get pid(): number | undefined {
    return this.#hasEnded ? undefined : this.#child.pid
  }

  /** Messages of one tick of the event loop travel as one. */
  send(message: ToPeers): void {
    if (this.#unsent.length === 0) setImmediate(this.#flush)
    this.#unsent.push(message)
  }

  kill(): void {
    if (!this.#hasEnded) this.#child.kill("SIGKILL")
  }

  readonly #flush = (): void => {
    const messages = this.#unsent
    this.#unsent = []
    // A failed write means that the process has ended, which its exit event reports.
    if (!this.#hasEnded && this.#child.connected) this.#child.send(messages, undefined, undefined, () => {})
  }

  #ended(detail: string): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    void this.#folder.remove()
    this.#onExit(detail)
  }
}

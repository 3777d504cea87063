// Gives Node's HTTP parser what a connection has read, in slices. Node gives it 64 KiB in one go, and the parser calls JavaScript for each chunk
// of a body: eleven thousand one-byte chunks hold the event loop for 150 ms (measured), refused or not. Here
// what takes longer than a slice goes on in a later turn of the loop (InSlices.ts), and the connection is not read meanwhile.
import type { Socket } from "node:net"
import { sliceMs, takeTurns } from "#http/InSlices.ts"

/** Bytes of the first part of a slice. The following ones are twice as long each, while they are parsed quickly. */
const leastBytes = 512
/** Seven hundred one-byte chunks: 5 ms. */
const mostBytes = 4_096
/** A part that takes no longer is followed by a longer one. */
const quickMs = 0.1

/** The body of the request whose head was parsed last. */
export interface ArrivingBody {
  /**
   * Whether it has begun and not ended, and how it comes. What is parsed waits only where it comes in chunks: one of known length is one
   * piece for the parser, and requests that were sent ahead are all seen at once, and counted.
   */
  readonly comes: () => "in chunks" | "in one piece" | "not"
  /** Whether there is room for more of it. */
  readonly hasRoom: () => boolean
  /**
   * Whether Node has paused the connection for responses that wait to be sent. It resumes the connection itself, and its parser takes no
   * bytes before: giving it some would end the process with a failed assertion.
   */
  readonly waitsForResponses: () => boolean
}

export class SlicedReads {
  readonly #socket: Socket
  readonly #toParser: (bytes: Buffer) => void
  readonly #body: ArrivingBody
  /** Read, and not yet given to the parser: one read, and what came while the connection was being paused. */
  #rest: Array<Buffer> = []
  #partBytes = leastBytes
  #leave: (() => void) | undefined
  #hasEnded = false

  /** Takes the place of the listener with which Node's server reads the connection. */
  constructor(socket: Socket, body: ArrivingBody) {
    const [toParser] = socket.listeners("data") as Array<(bytes: Buffer) => void>
    if (toParser === undefined) throw new Error("Node's server does not read its connection")
    this.#socket = socket
    this.#toParser = toParser
    this.#body = body
    socket.off("data", toParser)
    socket.on("data", this.#read)
    socket.on("resume", this.#resumed)
    socket.once("close", () => this.#stop())
  }

  /** The connection speaks another protocol from now on: what is not parsed is given back, to be read by what reads it next. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#socket.off("data", this.#read)
    this.#socket.off("resume", this.#resumed)
    const rest = Buffer.concat(this.#rest)
    this.#stop()
    if (rest.length > 0) this.#socket.unshift(rest)
  }

  #stop(): void {
    this.#rest = []
    this.#leave?.()
    this.#leave = undefined
  }

  readonly #read = (bytes: Buffer): void => {
    this.#rest.push(bytes)
    if (this.#leave === undefined) this.#begin()
    else this.#socket.pause()
  }

  /** By Node, once responses have been sent: the rest of what had been read by then comes first. */
  readonly #resumed = (): void => {
    if (this.#leave === undefined && this.#rest.length > 0) this.#begin()
  }

  #begin(): void {
    if (this.#parse()) return
    this.#socket.pause()
    this.#leave = takeTurns(() => {
      if (!this.#parse()) return false
      this.#leave = undefined
      if (!this.#hasEnded && !this.#body.waitsForResponses() && this.#body.hasRoom()) this.#socket.resume()
      return true
    })
  }

  /** Parses for the time of a slice. True if nothing is left, or if the rest waits until Node resumes the connection. */
  #parse(): boolean {
    const untilMs = performance.now() + sliceMs
    let nowMs = untilMs - sliceMs
    for (let bytes = this.#rest[0]; bytes !== undefined; bytes = this.#rest[0]) {
      if (this.#body.waitsForResponses() || this.#socket.destroyed) return true
      const comes = this.#body.comes()
      if (nowMs >= untilMs && comes === "in chunks") return false
      const part = comes === "in one piece" ? bytes : bytes.subarray(0, this.#partBytes)
      if (part.length === bytes.length) this.#rest.shift()
      else this.#rest[0] = bytes.subarray(part.length)
      this.#toParser.call(this.#socket, part)
      const beforeMs = nowMs
      nowMs = performance.now()
      const isQuick = nowMs - beforeMs < quickMs
      this.#partBytes = isQuick ? Math.min(mostBytes, 2 * this.#partBytes) : leastBytes
    }
    return true
  }
}

// Gives a parser what a connection has read, in slices: Node's of HTTP, and those of WebSockets. Node gives it 64 KiB in one go, and up to
// 2 MiB of a connection in one turn of the event loop. Eleven thousand one-byte chunks of a body held the loop for 150 ms, three
// WebSockets of small messages for 37 to 57 and twenty of large ones for 31 to 150 (measured). Here what takes longer than a slice, or
// comes in a turn that has taken long already, goes on in a later one (InSlices.ts), and the connection is not read meanwhile.
import type { Socket } from "node:net"
import { isTurnOver, sliceMs, takeTurns } from "#http/InSlices.ts"

/** Bytes of the first part of a slice. The following ones are twice as long each, while they are parsed quickly. */
const leastBytes = 512
/** Seven hundred one-byte chunks: 5 ms. */
const mostBytes = 4_096
/** A part that takes no longer is followed by a longer one. */
const quickMs = 0.1

/** What arrives on the connection: the body of the request whose head was parsed last, or the frames of a WebSocket. */
export interface Arriving {
  /**
   * Whether it has begun and not ended, and how it comes. What is parsed waits only where it comes in chunks or frames: a body of known
   * length is one piece for the parser, and requests that were sent ahead are all seen at once, and counted.
   */
  readonly comes: () => "in chunks" | "in one piece" | "not"
  /** Whether there is room for more of it. */
  readonly hasRoom: () => boolean
  /**
   * Whether what owns the parser has paused the connection, and will resume it itself. The parser gets no bytes before: Node's would end the
   * process with a failed assertion.
   */
  readonly isHeldUp: () => boolean
}

export class SlicedReads {
  readonly #socket: Socket
  readonly #toParser: (bytes: Buffer) => void
  readonly #arriving: Arriving
  /** Read, and not yet given to the parser: one read, and what came while the connection was being paused. */
  #rest: Array<Buffer> = []
  #partBytes = leastBytes
  #leave: (() => void) | undefined
  #hasEnded = false

  /** Takes the place of the listener with which the parser reads the connection. */
  constructor(socket: Socket, arriving: Arriving) {
    const [toParser] = socket.listeners("data") as Array<(bytes: Buffer) => void>
    if (toParser === undefined) throw new Error("nothing reads the connection")
    this.#socket = socket
    this.#toParser = toParser
    this.#arriving = arriving
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

  /** By what had paused it: the rest of what had been read by then comes first. */
  readonly #resumed = (): void => {
    if (this.#leave === undefined && this.#rest.length > 0) this.#begin()
  }

  #begin(): void {
    if (!this.#isLate() && this.#parse()) return
    this.#socket.pause()
    this.#leave = takeTurns(() => {
      isTurnOver()
      if (!this.#parse()) return false
      this.#leave = undefined
      if (!this.#hasEnded && !this.#arriving.isHeldUp() && this.#arriving.hasRoom()) this.#socket.resume()
      return true
    })
  }

  /** Whether others have used up the turn. What little a client sends at a time does not wait for the next, nor what is only copied. */
  #isLate(): boolean {
    return this.#arriving.comes() === "in chunks" && isTurnOver() && this.#rest[0]!.length > mostBytes
  }

  /** Parses for the time of a slice. True if nothing is left, or if the rest waits until the connection is resumed. */
  #parse(): boolean {
    const untilMs = performance.now() + sliceMs
    let nowMs = untilMs - sliceMs
    for (let bytes = this.#rest[0]; bytes !== undefined; bytes = this.#rest[0]) {
      if (this.#arriving.isHeldUp() || this.#socket.destroyed) return true
      const comes = this.#arriving.comes()
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

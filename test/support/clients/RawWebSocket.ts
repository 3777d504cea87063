// A WebSocket client for tests that sends a handshake of exact bytes and reads the answer; then it sends text frames and reads JSON
// frames. It does not support compression: frames with it are an error, even if the test offers it.
import { randomBytes } from "node:crypto"
import { RawConnection } from "./RawHttp.ts"

type Event = Readonly<Record<string, unknown>>

/** A text frame as a client sends it, masked. */
const clientFrame = (text: string): Buffer => {
  const payload = Buffer.from(text)
  const short = payload.length < 126
  const head = Buffer.alloc(short ? 2 : 10)
  head[0] = 0x81
  head[1] = 0x80 | (short ? payload.length : 127)
  if (!short) head.writeBigUInt64BE(BigInt(payload.length), 2)
  const mask = randomBytes(4)
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ mask[at % 4]!)])
}

export class RawWebSocket {
  readonly connection: RawConnection
  /** Status line and headers of the answer to the handshake. */
  readonly head: string
  #at: number

  private constructor(connection: RawConnection, head: string) {
    this.connection = connection
    this.head = head
    this.#at = head.length + 4
  }

  static async open(port: number, handshake: string): Promise<RawWebSocket> {
    const connection = await RawConnection.open(port)
    await connection.send(handshake)
    const end = () => connection.unread.indexOf("\r\n\r\n")
    while (end() < 0) await connection.bytes(connection.unread.length + 1)
    return new RawWebSocket(connection, connection.unread.toString("latin1", 0, end()))
  }

  send(text: string): Promise<void> {
    return this.connection.send(clientFrame(text))
  }

  /** The next text frame, decoded; throws on any other. */
  async next(): Promise<Event> {
    const [first, second] = (await this.connection.bytes(this.#at + 2)).subarray(this.#at)
    if (first !== 0x81) throw new Error(`not a whole, plain text frame: ${first}`)
    const lengthBytes = second === 126 ? 2 : second === 127 ? 8 : 0
    const from = this.#at + 2 + lengthBytes
    const extended = (await this.connection.bytes(from)).subarray(this.#at + 2)
    const length =
      lengthBytes === 0
        ? second!
        : lengthBytes === 2
          ? extended.readUInt16BE()
          : Number(extended.readBigUInt64BE())
    const bytes = await this.connection.bytes(from + length)
    this.#at = from + length
    return JSON.parse(bytes.toString("utf8", from, this.#at)) as Event
  }

  /** Reads frames until the first of this type; returns all of them, including that one. */
  async until(type: string): Promise<ReadonlyArray<Event>> {
    const seen: Array<Event> = []
    while (seen.at(-1)?.type !== type) seen.push(await this.next())
    return seen
  }
}

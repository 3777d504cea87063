// Records the bytes that sockets of this process exchange with the listeners of the product, with any client: fetch, `ws`, OpenAI's
// client, raw bytes. WireCheck reads the records after each test. It wraps methods of Node's sockets, because they are all that these
// clients have in common.
import net from "node:net"

export type WireRole = "edge" | "auth" | "router"

/** Most bytes that are kept for one direction of a connection. Later bytes are not checked. */
const keptBytes = 32 * 1024 * 1024

/** One direction of a connection. */
export interface Bytes {
  readonly chunks: Array<Buffer>
  size: number
  /** Whether more bytes were sent than are kept. */
  isCut: boolean
}

export interface Connection {
  readonly role: WireRole
  readonly sent: Bytes
  readonly received: Bytes
  isOver: boolean
}

const watched = new Map<number, WireRole>()
const bySocket = new WeakMap<net.Socket, Connection | "unwatched">()
/** Connections with bytes that have not been checked. */
export const connections = new Set<Connection>()
let isInstalled = false
let isOn = false

/** A listener of the product. Without `startTap` nothing is recorded. */
export const watchPort = (port: number, role: WireRole): void => void watched.set(port, role)
export const unwatchPort = (port: number): void => void watched.delete(port)

/** Watches the port of an address like http://127.0.0.1:8080; does nothing with an empty one. */
export const watchBase = (base: string, role: WireRole): void => {
  if (base !== "") watchPort(Number(new URL(base).port), role)
}

const none = (): Bytes => ({ chunks: [], size: 0, isCut: false })

const connectionOf = (socket: net.Socket): Connection | undefined => {
  const known = bySocket.get(socket)
  if (known !== undefined) return known === "unwatched" ? undefined : known
  const port = socket.remotePort
  if (port === undefined) return undefined
  const role = watched.get(port)
  if (role === undefined) {
    bySocket.set(socket, "unwatched")
    return undefined
  }
  const connection: Connection = { role, sent: none(), received: none(), isOver: false }
  bySocket.set(socket, connection)
  connections.add(connection)
  socket.once("close", () => {
    connection.isOver = true
  })
  return connection
}

const keep = (bytes: Bytes, chunk: unknown, encoding?: unknown): void => {
  if (bytes.isCut) return
  const data =
    typeof chunk === "string"
      ? Buffer.from(chunk, Buffer.isEncoding(String(encoding)) ? (encoding as BufferEncoding) : "utf8")
      : chunk instanceof Uint8Array
        ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
        : undefined
  if (data === undefined) return
  bytes.size += data.length
  if (bytes.size > keptBytes) bytes.isCut = true
  else bytes.chunks.push(data)
}

/** The methods of Node's sockets that every read and write calls, also with TLS; they carry plain text in both cases. */
interface Inner {
  push: (this: net.Socket, chunk: unknown, encoding?: unknown) => boolean
  _writeGeneric: (this: net.Socket, isMany: boolean, data: unknown, encoding: unknown, done: unknown) => void
}

/** Forgets listeners and connections, and records nothing more: files that run one after the other share this module. */
export const stopTap = (): void => {
  isOn = false
  watched.clear()
  connections.clear()
}

export const startTap = (): void => {
  isOn = true
  if (isInstalled) return
  isInstalled = true
  const inner = net.Socket.prototype as unknown as Inner
  const { _writeGeneric, push } = inner
  inner.push = function (chunk, encoding) {
    if (isOn && chunk !== null) {
      const connection = connectionOf(this)
      if (connection !== undefined) keep(connection.received, chunk, encoding)
    }
    return push.call(this, chunk, encoding)
  }
  inner._writeGeneric = function (isMany, data, encoding, done) {
    // During the connect this call is repeated later.
    const connection = this.connecting || !isOn ? undefined : connectionOf(this)
    if (connection !== undefined) {
      if (isMany && Array.isArray(data)) {
        for (const part of data as ReadonlyArray<{ chunk: unknown; encoding: unknown }>) {
          keep(connection.sent, part.chunk, part.encoding)
        }
      } else keep(connection.sent, data, encoding)
    }
    return _writeGeneric.call(this, isMany, data, encoding, done)
  }
}

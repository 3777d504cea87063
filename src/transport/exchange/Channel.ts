// What a transport's HTTP library does for one exchange. Two libraries implement it: uWebSockets.js (../uws) and Node's
// own server with `ws` (../node). Everything else about requests and responses is written once, over these interfaces.

/** The head of a request as it arrived. */
export interface IncomingHead {
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Lower-case names; values of repeated headers are joined. */
  readonly headers: Record<string, string>
  /** Bytes of method, target, names and values. */
  readonly headBytes: number
  readonly headerCount: number
  /** For example "1.1". */
  readonly version: string
}

/** Headers that many responses share: as a list, and as one header whose value holds the other lines. */
export interface SharedHeaders {
  readonly list: ReadonlyArray<readonly [name: string, value: string]>
  readonly joined: readonly [name: string, value: string] | undefined
}

/**
 * The response of one request, and what still arrives of the request. Must not be used after the end of the response or
 * its abort, except where a method says so. The order of a response is: status, headers, body, end.
 */
export interface ReplyChannel {
  /** True if the library reads chunked bodies exactly, so that what follows one on a connection can be trusted. */
  readonly readsChunksExactly: boolean
  /** True if the request can become a WebSocket. */
  readonly upgradable: boolean

  writeStatus(status: number): void
  writeHeader(name: string, value: string): void
  writeShared(headers: SharedHeaders): void
  /** One piece of a body of unknown length. False if the reader does not keep up; the piece is kept. */
  write(piece: string | Uint8Array): boolean
  /**
   * One piece of a body of known length: whether all of it was taken, and whether the response is complete. Pieces that
   * were not taken, or only in part (see `getWriteOffset`), are offered again.
   */
  tryEnd(piece: Uint8Array, totalBytes: number): [taken: boolean, complete: boolean]
  /** Bytes of the body that were taken so far. */
  getWriteOffset(): number
  /** Ends the response, and closes the connection after it if `close` is true. */
  end(body?: string | Uint8Array, close?: boolean): void
  /** Ends a response whose headers say everything about its body. */
  endWithoutBody(): void
  /**
   * Sends content-length and the body of a response whose request is read no further. The connection stays open until
   * `close`, because closing with unread bytes resets it, which can lose the response. May be closed afterwards.
   */
  endUnread(body: string, withBody: boolean): void

  /** Called when the reader takes data again. */
  onWritable(listener: () => void): void
  /** Called when the client has left before the end of the response, or the connection was closed. */
  onAborted(listener: () => void): void
  /**
   * Calls `listener` with the request's body as it arrives; the bytes are valid during the call only. Calls `malformed`
   * if the body is not framed as its head says and the library does not answer that itself.
   */
  onData(listener: (piece: Uint8Array, last: boolean) => void, malformed: (problem: string) => void): void
  /** `listener` is not called any more: what still comes of the body costs as little as possible. May be called after the end. */
  dropData(): void
  /** The body is wanted: a client that waits for `100 Continue` gets it. */
  wantBody(): void
  /** Stops and resumes reading from the connection. */
  pause(): void
  resume(): void
  /** Closes the connection at once, without ending the response. May be called after the end. */
  close(): void
  /** Sends everything that `write` writes in one system call. */
  cork(write: () => void): void
  /** Restarts the library's own idle timer, if it has one. `paused` says whether reading is paused. */
  renewTimer(paused: boolean): void

  /** True if a header of the PROXY protocol came before the request. */
  namesProxiedPeer(): boolean
  /** Remembers the client's address for the time after the end. */
  keepAddress(): void
  /** The client's address. Undefined if it was not kept and the connection is gone. */
  address(): string | undefined

  /** Answers a WebSocket handshake with the headers written before, and opens the socket. Not called inside of `cork`. */
  upgrade(live: SocketEvents, handshake: SocketHandshake): void
}

/** A WebSocket handshake. */
export interface SocketHandshake {
  /** The subprotocol, or an empty text. */
  readonly protocol: string
  /** Those of the request. */
  readonly headers: Readonly<Record<string, string>>
  /** True inside of the library's callback that created the request. */
  readonly inCallback: boolean
}

/** One open WebSocket. Not used after its end. */
export interface SocketChannel {
  /** False if the message was dropped because too much is unsent. The memory of a `TextFrame` is freed once it is sent. */
  send(message: string | Uint8Array): boolean
  /** Sends a close frame and ends the socket. */
  end(code: number, reason: string): void
  /** Closes the connection without a close frame. */
  close(): void
  /** Unsent bytes. */
  getBufferedAmount(): number
  /** Sends everything that `write` sends in one system call. */
  cork(write: () => void): void
  /** Stops reading from the connection, or does nothing where the library cannot. What it has read already still comes. */
  pause(): void
  resume(): void
}

/** Events of one WebSocket, which the library reports. */
export interface SocketEvents {
  open(ws: SocketChannel): void
  /** Bytes of the longest message that is taken. */
  readonly mostBytes: number
  /** So many bytes of a message that is not whole are in memory. False if that is more than is free for all sockets. */
  arriving(bytes: number): boolean
  /** The bytes are valid during the call only, unless they are `owned`: in memory that nothing else uses. */
  message(data: Uint8Array, isBinary: boolean, owned?: boolean): void
  /** A message that is larger than `mostBytes` was read and not kept; its first and its last bytes. */
  tooLarge(first: Uint8Array, last: Uint8Array, isBinary: boolean): void
  /** What was sent has left, in part or all of it. */
  drain(): void
  /** `how`: where the library itself has cut it. */
  closed(code: number, reason: string, how?: "silent" | "malformed"): void
}

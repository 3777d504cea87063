// The counters of a listener, for /metrics and tests.
import { MemoryBudget } from "#domain/queues/MemoryBudget.ts"
import type { ListenerCounts, SocketEnd } from "#http/NodeMeters.ts"

export interface TransportCounts extends ListenerCounts {
  /** Requests handed to the application since the start. */
  readonly requests: number
  /** Requests whose fiber runs, including WebSockets. */
  readonly inFlight: number
  /** Bytes of WebSocket messages that wait for their handler. */
  readonly messageBufferedBytes: number
}

export class TransportCounters implements TransportCounts {
  /** Bytes of messages of WebSockets that are not read yet. Each socket is a user of its own. */
  readonly unread: MemoryBudget
  /** Of them those of large messages, by the owner of their sockets. */
  readonly unreadLarge: MemoryBudget
  connections = 0
  requests = 0
  inFlight = 0
  webSockets = 0
  readonly socketEnds: Record<SocketEnd, number> = {
    client: 0,
    node: 0,
    vanished: 0,
    unread: 0,
    silent: 0,
    malformed: 0,
  }
  replyBufferedBytes = 0
  bodyBufferedBytes = 0
  aborts = 0
  slowReadersCut = 0
  brokenReplies = 0
  headsTooLarge = 0
  framingRefused = 0
  bodiesTooLarge = 0
  bodiesStalled = 0
  bodiesScattered = 0
  socketsFlooded = 0
  socketsOverrun = 0
  connectionsRefused = 0
  unlistedRefused = 0
  anonymousRefused = 0

  constructor(unread: MemoryBudget) {
    this.unread = unread
    const { node } = unread.limits
    this.unreadLarge = new MemoryBudget({ node, user: node })
  }

  get messageBufferedBytes(): number {
    return this.unread.held
  }
}

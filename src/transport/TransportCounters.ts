// What a listener counts, for /metrics and for tests. Written by this folder, read by anyone through Listener.

export interface TransportCounts {
  /** Open TCP connections, WebSockets included. */
  readonly connections: number
  /** Requests handed to the application since the start. */
  readonly requests: number
  /** Requests whose fiber runs, WebSockets included. */
  readonly inFlight: number
  readonly webSockets: number
  /** Response bytes that wait in this process for slow readers; an upper bound. */
  readonly replyBufferedBytes: number
  /** Request body bytes that wait for their handler. */
  readonly bodyBufferedBytes: number
  /** Clients that left before their answer was complete. */
  readonly aborts: number
  /** Readers cut for taking too little, responses and WebSockets alike. */
  readonly slowReadersCut: number
  /** Responses that failed after their head and were closed without an end. */
  readonly brokenReplies: number
  /** 431, 413 and 408 given by the transport itself. */
  readonly headsTooLarge: number
  readonly bodiesTooLarge: number
  readonly bodiesStalled: number
}

export class TransportCounters implements TransportCounts {
  connections = 0
  requests = 0
  inFlight = 0
  webSockets = 0
  replyBufferedBytes = 0
  bodyBufferedBytes = 0
  aborts = 0
  slowReadersCut = 0
  brokenReplies = 0
  headsTooLarge = 0
  bodiesTooLarge = 0
  bodiesStalled = 0
}

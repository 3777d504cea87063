// Headers that any reply of any role may have (protocol 1.4), and the replies that the listener or the routing makes
// without a handler (protocol 3.2, second table). Data; names are in lower case.
import { standardHeaders } from "#api/http/StandardHeaders.ts"

/** Written by the HTTP library or by the framing of HTTP. */
const framing = ["connection", "content-length", "date", "keep-alive", "transfer-encoding", "uwebsockets"]

export const everyReply: ReadonlyArray<string> = [
  ...framing,
  ...Object.keys(standardHeaders),
  "content-type",
  "x-request-id",
  "server-timing",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "x-receipt-id",
]

/** Headers of the answer to a WebSocket handshake. */
export const handshake: ReadonlyArray<string> = [
  "upgrade",
  "sec-websocket-accept",
  "sec-websocket-protocol",
  "sec-websocket-extensions",
]

interface ListenerReply {
  readonly status: number
  /** `detail`: the body of an error. */
  readonly body: "detail" | "none"
  readonly headers?: ReadonlyArray<string>
}

/** The body of these is `{detail}`, or nothing where uWebSockets.js answers itself. */
export const listenerReplies: ReadonlyArray<ListenerReply> = [
  {
    status: 204,
    body: "none",
    headers: ["access-control-allow-methods", "access-control-allow-headers", "access-control-max-age"],
  },
  { status: 400, body: "detail" },
  { status: 403, body: "detail" },
  { status: 404, body: "detail" },
  { status: 405, body: "detail", headers: ["allow"] },
  { status: 408, body: "detail" },
  { status: 411, body: "detail" },
  { status: 426, body: "detail", headers: ["sec-websocket-version"] },
  { status: 429, body: "detail", headers: ["retry-after"] },
  { status: 431, body: "detail" },
  { status: 500, body: "detail" },
  { status: 503, body: "detail" },
  { status: 505, body: "none" },
]

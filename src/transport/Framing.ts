// Checks a request's head beyond what uWS refuses itself: lengths, encodings, hosts and targets that two parsers may
// read differently, and WebSocket handshakes that violate RFC 6455. Pure. docs/security.md lists what uWS's parser
// accepts without showing it.

interface Head {
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** Lower-case names. Values of a repeated header are joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  /** Absent: 1.1. */
  readonly version?: string
}

export interface Flaw {
  readonly status: number
  readonly detail: string
  readonly headers?: Readonly<Record<string, string>>
}

const bad = (detail: string): Flaw => ({ status: 400, detail })

/** uWS accepts the PROXY protocol from any client. No client needs it, and another server would not accept it. */
export const proxyHeaderFlaw: Flaw = bad("the PROXY protocol is not spoken here")

/** A token of RFC 9110. No method in use has 32 characters. */
const method = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/
/** Up to 9 PB. JavaScript's integers are exact this far; uWS counts with 62 bits. */
const length = /^\d{1,15}$/
/** A name, an IPv4 address or an IPv6 address in brackets, with or without a port. */
const host = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+;=-]+)(?::\d{0,5})?$/
/** 16 bytes in base64. */
const webSocketKey = /^[A-Za-z0-9+/]{21}[AQgw]==$/

const lengthRequired: Flaw = { status: 411, detail: "content-length: is required by this node" }

/** What is wrong with a WebSocket handshake, if anything. */
const handshakeFlaw = ({ headers, method: name }: Head): Flaw | undefined => {
  if (name !== "GET") return bad("upgrade: a WebSocket begins with GET")
  if (headers["sec-websocket-version"] !== "13") {
    const version = { "sec-websocket-version": "13" }
    return { status: 426, detail: "sec-websocket-version: must be 13", headers: version }
  }
  if (!webSocketKey.test(headers["sec-websocket-key"] ?? "")) {
    return bad("sec-websocket-key: must be 16 bytes in base64, given once")
  }
  // uWS ends the process when such a request is upgraded at the end of its body.
  if ((headers["content-length"] ?? "0") !== "0" || headers["transfer-encoding"] !== undefined) {
    return bad("upgrade: a WebSocket handshake has no body")
  }
  const connection = (headers.connection ?? "").split(",").map((option) => option.trim().toLowerCase())
  // uWS takes a first Connection header of five characters for `close`, and then closes what was upgraded.
  return connection.includes("upgrade") && !connection.includes("close") && connection[0]?.length !== 5
    ? undefined
    : bad("connection: must be Upgrade")
}

const lengthFlaw = (headers: Head["headers"]): Flaw | undefined => {
  const sent = headers["content-length"]
  const encoding = headers["transfer-encoding"]
  if (sent !== undefined && !length.test(sent)) {
    return bad("content-length: must be one number of bytes")
  }
  if (encoding === undefined) return undefined
  if (sent !== undefined) return bad("content-length: must not come with transfer-encoding")
  return encoding.toLowerCase() === "chunked" ? undefined : bad("transfer-encoding: must be chunked")
}

/** Why the request is refused, if it is. Its connection is then closed, because the end of the request is uncertain. */
export const framingFlaw = (head: Head, chunkedBodies: boolean): Flaw | undefined => {
  const { headers, url, version = "1.1" } = head
  if (version !== "1.1" && version !== "1.0")
    return { status: 505, detail: "version: must be HTTP/1.1 or 1.0" }
  if (!method.test(head.method)) return bad("method: must be a token")
  if (!url.startsWith("/")) return bad("target: must be a path")
  if (url.includes("#")) return bad("target: must not hold a fragment")
  // HTTP/1.0 does not know Host. nginx sends it there too.
  const named = version === "1.1" || headers.host !== undefined
  if (named && !host.test(headers.host ?? "")) return bad("host: must be one name or address")
  // HTTP/1.0 knows no encodings, so a server and a proxy may disagree about the end of such a body.
  if (version === "1.0" && headers["transfer-encoding"] !== undefined) {
    return bad("transfer-encoding: needs HTTP/1.1")
  }
  const flaw = lengthFlaw(headers)
  if (flaw !== undefined) return flaw
  if (!chunkedBodies && headers["transfer-encoding"] !== undefined) return lengthRequired
  return headers.upgrade?.toLowerCase() === "websocket" ? handshakeFlaw(head) : undefined
}

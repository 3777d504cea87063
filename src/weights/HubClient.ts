// Requests a file from a model hub, follows redirects, and reads what the hub declares about the file. Implements the
// hub's resolve protocol: X-Linked-Size and X-Linked-Etag on the way, the content at the end.
//
// The token is sent only to the endpoint's own origin. A redirect leads to a storage host with a signed address, which
// must not receive it.
import { request as httpRequest, type IncomingMessage } from "node:http"
import { request as httpsRequest } from "node:https"

export interface Hub {
  /** Without a trailing slash. */
  readonly endpoint: string
  readonly token: string | undefined
}

/** A hub redirects once to its storage; the storage may redirect once more. */
const maxRedirects = 5
/** Silence after which a connection counts as dead. A guess: storage hosts stall for seconds, not for a minute. */
export const silenceMs = 60_000

/** The connection failed, or the host asked to come back later: another attempt may succeed. */
export class Transient extends Error {
  readonly host: string
  readonly retryAfterMs: number | undefined
  constructor(host: string, problem: string, retryAfterMs?: number) {
    super(problem)
    this.host = host
    this.retryAfterMs = retryAfterMs
  }
}

/** A final refusal: by status, or because a redirect must not be followed. */
export class Refusal extends Error {
  readonly host: string
  readonly status: number
  readonly withToken: boolean
  constructor(host: string, status: number, withToken: boolean, problem = "") {
    super(problem)
    this.host = host
    this.status = status
    this.withToken = withToken
  }
}

export interface Answer {
  readonly status: 200 | 206 | 416
  readonly host: string
  readonly headers: IncomingMessage["headers"]
  /** The size and tag that the hub declared before the redirect. */
  readonly linkedSize: number | undefined
  readonly linkedEtag: string | undefined
  readonly body: IncomingMessage
}

const integerOf = (text: string | ReadonlyArray<string> | undefined): number | undefined =>
  typeof text === "string" && /^\d{1,15}$/.test(text) ? Number(text) : undefined

/** An entity tag without quotes and weak prefix. */
export const bareTag = (tag: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof tag === "string" ? tag.replace(/^W\//, "").replace(/^"|"$/g, "") : undefined

/** `Retry-After` in seconds, at most 60. A date is ignored, because the clocks may differ. */
const retryAfterMs = (headers: IncomingMessage["headers"]): number | undefined => {
  const seconds = integerOf(headers["retry-after"])
  return seconds === undefined ? undefined : Math.min(60, seconds) * 1_000
}

const one = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  silentMs: number,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest
    // A new connection for each request: after a cut, a kept connection could be cut too.
    const request = send(url, { headers, signal, agent: false }, resolve)
    request.setTimeout(silentMs, () => request.destroy(new Error(`silent for ${silentMs} ms`)))
    request.on("error", (cause: NodeJS.ErrnoException) =>
      reject(new Transient(url.host, cause.code ?? cause.message)),
    )
    request.end()
  })

export interface Ask {
  readonly hub: Hub
  readonly url: string
  /** Bytes that are on disk already, and the tag under which the host sent them. */
  readonly from: { readonly offset: number; readonly etag: string } | undefined
  /** Only these bytes are wanted; `to` is the last. A host without range requests sends the whole file. */
  readonly range?: { readonly from: number; readonly to: number }
  readonly signal: AbortSignal
  readonly silenceMs: number
}

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status)

/** Requests the file, or the rest of it. Throws Transient or Refusal. */
export const ask = async ({ from, hub, range, silenceMs: silentMs, signal, url }: Ask): Promise<Answer> => {
  const home = new URL(hub.endpoint).origin
  let at = new URL(url)
  let linkedSize: number | undefined
  let linkedEtag: string | undefined
  for (let redirects = 0; ; redirects++) {
    const withToken = hub.token !== undefined && at.origin === home
    const headers: Record<string, string> = { "accept-encoding": "identity", "user-agent": "edgewise" }
    if (withToken) headers.authorization = `Bearer ${hub.token}`
    if (from !== undefined) {
      headers.range = `bytes=${from.offset}-`
      headers["if-range"] = from.etag
    }
    if (range !== undefined) headers.range = `bytes=${range.from}-${range.to}`
    const response = await one(at, headers, signal, silentMs)
    const status = response.statusCode ?? 0
    // Only the hub's own declarations count, not those of a storage host.
    if (at.origin === home) {
      linkedSize ??= integerOf(response.headers["x-linked-size"])
      linkedEtag ??= bareTag(response.headers["x-linked-etag"])
    }
    if (status === 200 || status === 206 || status === 416) {
      return { status, host: at.host, headers: response.headers, linkedSize, linkedEtag, body: response }
    }
    response.destroy()
    if (status === 408 || status === 429 || status >= 500) {
      throw new Transient(at.host, `answered ${status}`, retryAfterMs(response.headers))
    }
    const { location } = response.headers
    if (!isRedirect(status) || location === undefined) throw new Refusal(at.host, status, withToken)
    if (redirects === maxRedirects)
      throw new Refusal(at.host, status, withToken, `more than ${maxRedirects} redirects`)
    const next = URL.canParse(location, at.href) ? new URL(location, at) : undefined
    const secure = next?.protocol === "https:" || (next?.protocol === "http:" && at.protocol === "http:")
    if (next === undefined || !secure) {
      throw new Refusal(at.host, status, withToken, "redirects to an address that is not https")
    }
    at = next
  }
}

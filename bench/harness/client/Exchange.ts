// One HTTP request of the load client, over Node's http client with kept connections. The reply's pieces come with the
// times of their arrival. Certificates are checked as Node does (NODE_EXTRA_CA_CERTS adds an authority).
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plain,
} from "node:http"
import { type RequestOptions, Agent as TlsAgent, request as tls } from "node:https"
import { detailOf, oneLine, RequestFailed } from "./Failures.ts"

export interface Target {
  /** Without a trailing slash and without `/v1`. */
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** What WebSockets trust besides the usual authorities. */
  readonly trust?: RequestOptions
}

interface Head {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

interface Outgoing {
  readonly method?: "GET" | "POST"
  readonly path: string
  readonly type?: string
  readonly body?: string | Uint8Array
  /** Of success; default: 200. */
  readonly status?: number
  readonly signal: AbortSignal
}

/** Bytes of a reply, at most: an hour of speech as 24 kHz PCM has 173 MB. */
const mostBytes = 256 * 2 ** 20
/** Bytes of an error's body that are read. */
const mostErrorBytes = 64 * 2 ** 10

const options = { keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 1_024 }
const agents = { plain: new PlainAgent(options), tls: new TlsAgent(options) }

/** Closes the kept connections, so that the process can end. */
export const closeConnections = (): void => {
  agents.plain.destroy()
  agents.tls.destroy()
}

const unreachable = (base: string, { code = "", message }: NodeJS.ErrnoException): RequestFailed => {
  if (code === "ECONNREFUSED") return new RequestFailed("unreachable", `nothing listens at ${base}`)
  return new RequestFailed("unreachable", oneLine(`${base}: ${message === "" ? code : message}`))
}

interface Callbacks {
  /** The head of a reply with the status of success. Throwing fails the request. */
  readonly onHead?: (head: Head) => void
  /** Throwing fails the request. */
  readonly onChunk: (chunk: Buffer, atMs: number) => void
}

/** Reads a refusal's body, up to a limit, and fails with its message. */
const refused = (incoming: IncomingMessage, fail: (failure: RequestFailed) => void): void => {
  const status = incoming.statusCode ?? 0
  const chunks: Array<Buffer> = []
  let bytes = 0
  const end = () =>
    fail(
      new RequestFailed(`${status}`, detailOf(Buffer.concat(chunks).toString("utf8")) || `status ${status}`),
    )
  incoming.on("data", (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > mostErrorBytes) incoming.destroy()
    else chunks.push(chunk)
  })
  incoming.on("close", end)
}

const attempt = (
  target: Target,
  outgoing: Outgoing,
  { onChunk, onHead }: Callbacks,
): Promise<"ended" | "connection was stale"> =>
  new Promise((resolve, reject) => {
    const isTls = target.base.startsWith("https:")
    const { body, method = "POST", path, signal, status = 200, type } = outgoing
    let began = false
    const request = (isTls ? tls : plain)(target.base + path, {
      agent: isTls ? agents.tls : agents.plain,
      method,
      headers: {
        ...(type === undefined ? {} : { "content-type": type }),
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
        accept: "*/*",
        ...target.headers,
      },
    })
    const timer = setTimeout(
      () => fail(new RequestFailed("timeout", `no end within ${target.timeoutMs / 1000} s`)),
      target.timeoutMs,
    )
    const onAbort = () => fail(new RequestFailed("unfinished", "the run ended before the reply"))
    const settle = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", onAbort)
    }
    const fail = (failure: unknown): void => {
      settle()
      request.destroy()
      reject(failure)
    }
    if (signal.aborted) return onAbort()
    signal.addEventListener("abort", onAbort)
    request.on("error", (cause: NodeJS.ErrnoException) => {
      // A server may close a kept connection in the moment in which it is used again; nothing was answered then.
      if (!began && request.reusedSocket && cause.code === "ECONNRESET") {
        settle()
        resolve("connection was stale")
      } else if (began || cause.code === "ECONNRESET" || cause.code === "EPIPE") {
        fail(new RequestFailed("closed early", "the connection ended before the reply"))
      } else fail(unreachable(target.base, cause))
    })
    request.on("response", (incoming) => {
      began = true
      if (incoming.statusCode !== status) return refused(incoming, fail)
      let bytes = 0
      try {
        onHead?.({ status, headers: incoming.headers })
      } catch (failure) {
        return fail(failure)
      }
      incoming.on("data", (chunk: Buffer) => {
        const atMs = performance.now()
        bytes += chunk.length
        if (bytes > mostBytes) return fail(new RequestFailed("too large", `over ${mostBytes / 2 ** 20} MB`))
        try {
          onChunk(chunk, atMs)
        } catch (failure) {
          fail(failure)
        }
      })
      incoming.on("error", () => {})
      incoming.on("end", () => {
        settle()
        resolve("ended")
      })
      incoming.on("close", () => {
        if (!incoming.complete)
          fail(new RequestFailed("closed early", "the connection ended before the reply"))
      })
    })
    request.end(body)
  })

/** Sends a request and reads its whole reply. Fails with RequestFailed, also for every other status than that of success. */
export const exchange = async (target: Target, outgoing: Outgoing, callbacks: Callbacks): Promise<void> => {
  if ((await attempt(target, outgoing, callbacks)) === "ended") return
  if ((await attempt(target, outgoing, callbacks)) === "ended") return
  throw new RequestFailed("closed early", "the server closed two kept connections in a row")
}

/** A reply's whole body as text, up to a limit. */
export const exchangeText = async (
  target: Target,
  outgoing: Outgoing,
  mostTextBytes: number,
  onHead?: (head: Head) => void,
): Promise<string> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  await exchange(target, outgoing, {
    ...(onHead === undefined ? {} : { onHead }),
    onChunk: (chunk) => {
      bytes += chunk.length
      if (bytes > mostTextBytes)
        throw new RequestFailed("too large", `over ${mostTextBytes / 2 ** 10} KB of text`)
      chunks.push(chunk)
    },
  })
  return Buffer.concat(chunks).toString("utf8")
}

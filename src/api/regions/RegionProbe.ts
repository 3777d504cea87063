// One probe of a region's edge: does it serve, and how long is a round trip to it? Opens one connection, requests
// /health twice and closes it: the second answer is timed, without the handshakes of the first.
import { Agent as HttpAgent, request as httpRequest } from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import { Effect } from "effect"

export interface Watched {
  readonly code: string
  /** Base address of its edge. */
  readonly endpoint: string
}

export type Probed =
  | { readonly healthy: false }
  /** The round trip includes the edge's own time for an answer. */
  | { readonly healthy: true; readonly roundTripMs: number }

/** Completes within a bounded time, and never fails. */
export type Probe = (region: Watched) => Effect.Effect<Probed>

/** An edge's answer has about 1 KB; a longer one than this comes from something else and counts as unhealthy. */
const maxBodyBytes = 64 * 1024

/** Two seconds, or less where rounds are shorter: a region that answers later would be of little use to callers. */
export const probeTimeoutMs = (everyMs: number): number => Math.min(2_000, everyMs)

interface Answer {
  readonly status: number
  /** From the request to the head of its answer, with the handshakes where the connection was new. */
  readonly headMs: number
  readonly reused: boolean
}

const get = (url: URL, agent: HttpAgent, signal: AbortSignal): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const startedMs = performance.now()
    const send = url.protocol === "https:" ? httpsRequest : httpRequest
    const request = send(url, { agent, signal, headers: { accept: "application/json" } })
    request.once("error", reject)
    request.once("response", (response) => {
      const headMs = performance.now() - startedMs
      let bytes = 0
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > maxBodyBytes) response.destroy(new Error("the answer is too long"))
      })
      response.once("error", reject)
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, headMs, reused: request.reusedSocket }),
      )
    })
    request.end()
  })

const look = async (url: URL, signal: AbortSignal): Promise<Probed> => {
  const Agent = url.protocol === "https:" ? HttpsAgent : HttpAgent
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  try {
    const first = await get(url, agent, signal)
    if (first.status !== 200) return { healthy: false }
    const second = await get(url, agent, signal).catch(() => undefined)
    // An edge that closes every connection, or is too slow for a second answer, is measured with its handshakes.
    const isRoundTrip = second?.reused && second.status === 200
    return { healthy: true, roundTripMs: isRoundTrip ? second.headMs : first.headMs }
  } finally {
    agent.destroy()
  }
}

/** 200 is healthy or degraded, which still serves; an edge that is unhealthy or draining answers 503. */
export const httpProbe =
  (everyMs: number): Probe =>
  ({ endpoint }) =>
    Effect.tryPromise((interrupted) => {
      const signal = AbortSignal.any([interrupted, AbortSignal.timeout(probeTimeoutMs(everyMs))])
      return look(new URL(`${endpoint}/health`), signal)
    }).pipe(Effect.orElseSucceed((): Probed => ({ healthy: false })))

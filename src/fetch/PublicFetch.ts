// Fetches a file from a client's address (protocol 8.7, 7.15) without giving access to internal networks: every address is
// checked after its name is resolved, the socket connects to exactly the checked address, and each redirect is checked
// again.
import { Resolver } from "node:dns/promises"
import http from "node:http"
import https from "node:https"
import { isIP } from "node:net"
import { Effect, Option, Semaphore } from "effect"
import { isPublicAddress } from "#domain/access/PublicAddress.ts"
import { report } from "#domain/process/OperatorLog.ts"
import { PieceBudget } from "#domain/queues/PieceBudget.ts"
import { SmallPieces } from "#domain/queues/SmallPieces.ts"
import { FetchRefused } from "./FetchRefused.ts"

export interface FetchOptions {
  /** Whether addresses without TLS are fetched. */
  readonly plainHttp: boolean
  /** Resolves a host name to addresses. */
  readonly resolve?: (host: string) => Effect.Effect<ReadonlyArray<string>, FetchRefused>
  /** True if an address may be connected to. Tests use it to allow their own loopback listener. */
  readonly allowed?: (address: string) => boolean
  /** Time for the whole fetch, including redirects. Default: 10 s. */
  readonly timeoutMs?: number
  readonly maxBytes: number
  /** Concurrent fetches; each may hold `maxBytes`. */
  readonly maxConcurrent?: number
}

/** Longest address (protocol 8.7). A guess: old proxies accept no longer ones. */
const maxUrlChars = 2048
const maxRedirects = 3
/** Concurrent fetches of one user. */
const maxPerUser = 4

/** Error codes of this node's own faults: name servers, network, file descriptors. */
const ownFaults: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EMFILE",
  "ENETDOWN",
  "ENETUNREACH",
  "ENFILE",
  "EREFUSED",
  "ESERVFAIL",
  "ETIMEOUT",
])

/** Logs a failure that is this node's fault. Never logs the address, which a client has chosen. */
const reportOwn = (doing: "resolve" | "connect", code: string | undefined): Effect.Effect<void> =>
  code === undefined || !ownFaults.has(code) || (doing === "connect" && code === "ECONNREFUSED")
    ? Effect.void
    : report({
        event: "address not fetched",
        reason:
          doing === "resolve"
            ? `name servers do not answer (${code})`
            : `no connection can be made (${code})`,
        action: "check the node's name servers, network and limit of open files",
        facts: { code },
        kind: code,
      })

const codeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined
/**
 * Node's parser costs 10 µs per chunk of any size. Servers usually send a kilobyte or more at a time. A guess, well
 * below that.
 */
const filePieces = { free: 256, meanBytes: 512 }
/** Interim responses (1xx) before the response; servers send one or two. */
const maxInterim = 8

const refuse = (reason: FetchRefused["reason"], detail: string) => new FetchRefused({ reason, detail })

/** Uses DNS only: no hosts file, no search domains, and no thread of the pool blocked by a slow name server. */
const resolveByDns = (host: string) =>
  Effect.callback<ReadonlyArray<string>, FetchRefused>((resume) => {
    const resolver = new Resolver({ timeout: 2_000, tries: 2 })
    Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]).then((answers) => {
      const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
      resume(
        addresses.length > 0
          ? Effect.succeed(addresses)
          : Effect.andThen(
              reportOwn("resolve", codeOf(answers.find((answer) => answer.status === "rejected")?.reason)),
              Effect.fail(refuse("NotResolved", "The host of the URL was not found")),
            ),
      )
    })
    return Effect.sync(() => resolver.cancel())
  })

/** The URL if it has an allowed form. `text` is as the client or a redirect wrote it. */
const parse = (text: string, base: URL | undefined, plainHttp: boolean): URL | FetchRefused => {
  if (text.length > maxUrlChars || !URL.canParse(text, base?.href))
    return refuse("BadUrl", "The address is not a URL")
  const url = new URL(text, base)
  if (url.protocol !== "https:" && !(plainHttp && url.protocol === "http:")) {
    return refuse("BadUrl", `The URL must be ${plainHttp ? "http or https" : "https"}`)
  }
  if (url.username !== "" || url.password !== "") return refuse("BadUrl", "The URL must not hold credentials")
  // The parser converts 0x7f.1, 2130706433 and full-width digits to the dotted form. Such spellings are used to hide an
  // address.
  const rewritten = isIP(url.hostname) === 4 && url.host !== base?.host && !text.includes(url.hostname)
  return rewritten ? refuse("BadUrl", "The URL's host is not in its plain form") : url
}

type Answer = { readonly bytes: Uint8Array } | { readonly location: string }

const tooLarge = (maxBytes: number) =>
  refuse("TooLarge", `The file behind the URL is larger than ${maxBytes} bytes`)

/** Reads the body into few blocks, whatever the size of its pieces. Gives up if they are too small. */
const readFile = (
  response: http.IncomingMessage,
  maxBytes: number,
  done: (outcome: Uint8Array | FetchRefused) => void,
): void => {
  const budget = new PieceBudget(filePieces)
  const small = new SmallPieces()
  const blocks: Array<Uint8Array> = []
  const keep = (block: Uint8Array | undefined): void => {
    if (block !== undefined) blocks.push(block)
  }
  let sizeBytes = 0
  let over = false
  const end = (outcome: Uint8Array | FetchRefused): void => {
    if (!over) done(outcome)
    over = true
  }
  response.on("data", (piece: Buffer) => {
    if (over) return
    sizeBytes += piece.length
    if (sizeBytes > maxBytes) return end(tooLarge(maxBytes))
    // The parser delivers all chunks of one read in one call.
    const flaw = budget.take(piece.length, response.socket.bytesRead)
    if (flaw !== undefined) return end(refuse("Scattered", `The answer of the URL ${flaw}`))
    keep(small.add(piece))
  })
  response.on("end", () => {
    keep(small.take())
    end(Buffer.concat(blocks, sizeBytes))
  })
}

/** One request to one checked address. Interruption closes the socket. */
const request = (url: URL, address: string, maxBytes: number) =>
  Effect.callback<Answer, FetchRefused>((resume) => {
    const secure = url.protocol === "https:"
    const host = url.hostname.replace(/^\[|\]$/g, "")
    const sent = (secure ? https : http).get({
      host: address,
      port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
      path: `${url.pathname}${url.search}`,
      // Certificates are checked against the requested name. SNI is only sent for names, not for addresses.
      ...(secure && isIP(host) === 0 ? { servername: host } : {}),
      headers: { host: url.host, "user-agent": "edgewise", accept: "*/*", "accept-encoding": "identity" },
      agent: false,
    })
    const fail = (reason: FetchRefused["reason"], detail: string) => {
      resume(Effect.fail(refuse(reason, detail)))
      sent.destroy()
    }
    let interim = 0
    sent.on("information", () => {
      if (++interim > maxInterim) fail("Failed", "The URL could not be fetched")
    })
    sent.on("error", (cause) => {
      const failed = Effect.fail(refuse("Failed", "The URL could not be fetched"))
      resume(Effect.andThen(reportOwn("connect", codeOf(cause)), failed))
      sent.destroy()
    })
    sent.on("response", (response) => {
      const status = response.statusCode ?? 0
      const { location } = response.headers
      if ([301, 302, 303, 307, 308].includes(status) && location !== undefined) {
        resume(Effect.succeed({ location }))
        sent.destroy()
        return
      }
      if (status !== 200) return fail("Status", `The URL answered with status ${status}`)
      const encoding = response.headers["content-encoding"] ?? "identity"
      // The request asked for no encoding. Decompression would need a second limit.
      if (encoding !== "identity") return fail("Encoding", "The URL answered with a content encoding")
      if (Number(response.headers["content-length"] ?? 0) > maxBytes) {
        const { reason, detail } = tooLarge(maxBytes)
        return fail(reason, detail)
      }
      readFile(response, maxBytes, (outcome) => {
        if (outcome instanceof FetchRefused) return fail(outcome.reason, outcome.detail)
        resume(Effect.succeed({ bytes: outcome }))
      })
      response.on("error", () => fail("Failed", "The URL's answer ended early"))
    })
    return Effect.sync(() => sent.destroy())
  })

/** `user` is the id of the paying user, who may use a share of the fetches only. */
export type PublicFetch = (url: string, user: string) => Effect.Effect<Uint8Array, FetchRefused>

const busy = refuse("Busy", "Too many files are being fetched")

export const makePublicFetch = (options: FetchOptions): PublicFetch => {
  const { resolve = resolveByDns, allowed = isPublicAddress, timeoutMs = 10_000, plainHttp } = options
  const { maxBytes, maxConcurrent = 8 } = options
  const permits = Semaphore.makeUnsafe(maxConcurrent)
  /** Running fetches by user; at most `maxConcurrent` entries. */
  const underWay = new Map<string, number>()
  const leave = (user: string): void => {
    const left = (underWay.get(user) ?? 1) - 1
    if (left === 0) underWay.delete(user)
    else underWay.set(user, left)
  }
  const share = <A>(user: string, fetch: Effect.Effect<A, FetchRefused>) =>
    Effect.suspend(() => {
      const count = underWay.get(user) ?? 0
      if (count >= maxPerUser) return Effect.fail(busy)
      underWay.set(user, count + 1)
      return Effect.ensuring(
        fetch,
        Effect.sync(() => leave(user)),
      )
    })

  /** The address to connect to. All addresses of the name must be allowed. */
  const checkedAddress = Effect.fnUntraced(function* (url: URL) {
    const host = url.hostname.replace(/^\[|\]$/g, "")
    const addresses = isIP(host) === 0 ? yield* resolve(host) : [host]
    const first = addresses[0]
    if (first === undefined || !addresses.every(allowed)) {
      return yield* refuse("NotPublic", "The URL does not lead to a public address")
    }
    return first
  })
  const follow = Effect.fnUntraced(function* (text: string) {
    let next = text
    let base: URL | undefined
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const url = parse(next, base, plainHttp)
      if (url instanceof FetchRefused) return yield* url
      const answer = yield* request(url, yield* checkedAddress(url), maxBytes)
      if ("bytes" in answer) return answer.bytes
      next = answer.location
      base = url
    }
    return yield* refuse("Redirects", `The URL redirects more than ${maxRedirects} times`)
  })
  return (url, user) =>
    share(user, follow(url)).pipe(
      Effect.timeoutOrElse({
        duration: timeoutMs,
        orElse: () => Effect.fail(refuse("TimedOut", "The URL did not answer in time")),
      }),
      Semaphore.withPermitsIfAvailable(permits, 1),
      Effect.flatMap(
        Option.match({
          onNone: () => Effect.fail(busy),
          onSome: Effect.succeed,
        }),
      ),
    )
}

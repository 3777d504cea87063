// Decides whether a request was made on this machine, which matters for the development key. Pure.
import { isIP, isIPv4 } from "node:net"
import type { IsTrusted } from "./ClientAddress.ts"

/** 127.0.0.0/8 and ::1, also as IPv4-mapped IPv6 (::ffff:127.0.0.1), in any spelling. False for all else. */
export const isLoopback = (address: string): boolean => {
  if (isIPv4(address)) return address.startsWith("127.")
  if (isIP(address) !== 6) return false
  // The URL parser normalizes every spelling of an IPv6 address. It accepts no zone ("%eth0").
  const canonical = new URL(`http://[${address.replace(/%.*$/, "")}]`).hostname.slice(1, -1)
  return canonical === "::1" || /^::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}$/.test(canonical)
}

/** True for a `Host` header with this machine's loopback address or name. A missing header counts as local. */
export const isLoopbackHost = (host: string | undefined): boolean => {
  if (host === undefined || host === "") return true
  const name = host
    .toLowerCase()
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
  return name === "localhost" || name.endsWith(".localhost") || isLoopback(name)
}

/** Headers in which proxies write client addresses; each holds a list, mostly of one. */
const addressHeaders = [
  "x-forwarded-for",
  "x-original-forwarded-for",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-envoy-external-address",
  "x-azure-clientip",
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "true-client-ip",
  "fastly-client-ip",
  "fly-client-ip",
] as const

/** Other headers that only a proxy or a tunnel adds. */
const proxyHeaders = [
  "via",
  "forwarded",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-real-port",
  "cdn-loop",
  "cf-ray",
  "cf-ipcountry",
  "cf-visitor",
  "x-amzn-trace-id",
  "x-cloud-trace-context",
] as const

type Headers = Readonly<Record<string, string | undefined>>

/** An address without the port and brackets that some proxies write. */
const bare = (entry: string): string =>
  entry
    .trim()
    .replace(/^\[([^\]]*)\](?::\d+)?$/, "$1")
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1")

/** The `for` of each element of a `Forwarded` header (RFC 7239); the whole header if it has none. */
const forwardedFor = (header: string): ReadonlyArray<string> => {
  const found = [...header.matchAll(/(?:^|[;,\s])for="?([^";,\s]*)/gi)].map(([, node = ""]) => node)
  return found.length === 0 ? [header] : found
}

/** Every client address that proxies have written into the request, as text. */
const writtenAddresses = (headers: Headers): ReadonlyArray<string> => [
  ...addressHeaders.flatMap((name) => headers[name]?.split(",") ?? []),
  ...(headers.forwarded === undefined ? [] : forwardedFor(headers.forwarded)),
]

/**
 * True if a request comes from this machine: its connection does, and no header indicates a proxy in between.
 *
 * Behind a proxy on the same machine every connection is a loopback connection. For a trusted proxy, every address that
 * it reports must be a loopback address. Other proxies are recognized by the headers that they add, or by a `Host` that
 * is not a loopback name. A proxy that adds no header and replaces `Host` (nginx without any `proxy_set_header`) and a
 * tunnel of bare TCP cannot be recognized.
 */
export const isLocalCaller = (
  { headers, peer }: { readonly headers: Headers; readonly peer: string },
  isTrusted: IsTrusted,
): boolean => {
  if (!isLoopback(peer)) return false
  const written = writtenAddresses(headers)
  if (isTrusted(peer) && written.length > 0) return written.every((entry) => isLoopback(bare(entry)))
  return (
    written.length === 0 &&
    proxyHeaders.every((name) => headers[name] === undefined) &&
    isLoopbackHost(headers.host)
  )
}

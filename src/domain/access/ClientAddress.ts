// Finds the client's address of a request, trusting only the forwarding headers of configured proxies. Pure.
import { BlockList, isIP } from "node:net"

export type IsTrusted = (address: string) => boolean

/** No proxy is trusted: the default of the setting. */
export const trustNone: IsTrusted = () => false

/**
 * Addresses that no machine has, because they are reserved for examples (RFC 5737, RFC 3849, RFC 9637); first IPv4, then IPv6. They
 * are in networks far from each other, so a list of proxies that has all addresses of one row has practically every address.
 */
const documentation = [
  ["192.0.2.1", "198.51.100.1", "203.0.113.1"],
  ["2001:db8::1", "3fff::1"],
]

/** True for a list such as 0.0.0.0/0 or ::/0, by which every client would be a trusted proxy. */
export const trustsEveryAddress = (isTrusted: IsTrusted): boolean =>
  documentation.some((addresses) => addresses.every(isTrusted))

const familyOf = (address: string): "ipv4" | "ipv6" | undefined => {
  const version = isIP(address)
  return version === 0 ? undefined : version === 4 ? "ipv4" : "ipv6"
}

/** Parses addresses and CIDR blocks, separated by commas. Undefined if one of them is neither. */
export const parseProxies = (text: string): IsTrusted | undefined => {
  const list = new BlockList()
  for (const entry of text.split(",").map((part) => part.trim())) {
    const [address = "", prefix] = entry.split("/")
    const family = familyOf(address)
    if (family === undefined) return undefined
    if (prefix === undefined) list.addAddress(address, family)
    else {
      const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
      if (!(bits <= (family === "ipv4" ? 32 : 128))) return undefined
      list.addSubnet(address, bits, family)
    }
  }
  return (address) => {
    const family = familyOf(address)
    return family !== undefined && list.check(address, family)
  }
}

/** An entry of `X-Forwarded-For`: an address, sometimes with a port. */
const forwarded = (entry: string): string | undefined => {
  const bare = entry.replace(/^\[([^\]]*)\](?::\d+)?$/, "$1").replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1")
  return isIP(bare) === 0 ? undefined : bare
}

/**
 * The last address that is not a trusted proxy's. Each proxy appends the address of its own client, so everything left
 * of the first untrusted address, read from the right, may be forged.
 */
export const clientAddress = (
  peer: string,
  forwardedFor: string | undefined,
  isTrusted: IsTrusted,
): string => {
  let address = peer
  for (const entry of (forwardedFor ?? "").split(",").reverse()) {
    if (!isTrusted(address)) break
    const before = forwarded(entry.trim())
    if (before === undefined) break
    address = before
  }
  return address
}

/** The eight groups of a valid IPv6 address, without leading zeros. */
const groupsOf = (address: string): ReadonlyArray<string> => {
  // The URL parser normalizes every spelling (capitals, an IPv4 tail).
  const canonical = new URL(`http://[${address.replace(/%.*$/, "")}]`).hostname.slice(1, -1)
  const [head = "", tail] = canonical.split("::")
  const left = head === "" ? [] : head.split(":")
  if (tail === undefined) return left
  const right = tail === "" ? [] : tail.split(":")
  return [...left, ...new Array<string>(8 - left.length - right.length).fill("0"), ...right]
}

/** The key of one subscriber: an IPv4 address, or the first 64 bits of an IPv6 address (its network). */
export const subscriberOf = (address: string): string =>
  isIP(address) === 6 ? groupsOf(address).slice(0, 4).join(":") : address

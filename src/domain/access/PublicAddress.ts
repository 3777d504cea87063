// Decides whether an IP address belongs to the public internet, before connecting to an address that a client chose.
// Pure. The tables are IANA's special-purpose address registries (RFC 6890 and successors). An address that is not in
// the plain form, or not clearly public, counts as not public.

import { BlockList, isIPv4, isIPv6 } from "node:net"

/** [first address, prefix length] of the IPv4 blocks that are not the public internet. */
const refusedIpv4: ReadonlyArray<readonly [string, number]> = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // carrier-grade NAT
  ["127.0.0.0", 8], // loopback
  ["169.254.0.0", 16], // link-local, and the clouds' metadata services
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16], // private
  ["198.18.0.0", 15], // benchmarking
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved and broadcast
]

/**
 * Public IPv6 is global unicast, 2000::/3, without these. Forms that contain an IPv4 address (mapped, compatible,
 * NAT64) lie outside of 2000::/3, except 6to4 and Teredo, which are listed.
 */
const refusedIpv6: ReadonlyArray<readonly [string, number]> = [
  ["2001::", 23], // protocol assignments, Teredo, ORCHID
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4
  ["3fff::", 20], // documentation
]

const ipv4Refused = new BlockList()
for (const [network, prefix] of refusedIpv4) ipv4Refused.addSubnet(network, prefix, "ipv4")

const ipv6Refused = new BlockList()
for (const [network, prefix] of refusedIpv6) ipv6Refused.addSubnet(network, prefix, "ipv6")

const globalUnicast = new BlockList()
globalUnicast.addSubnet("2000::", 3, "ipv6")

/** @param address as a resolver returns it: no brackets, no port, no zone */
export const isPublicAddress = (address: string): boolean => {
  if (isIPv4(address)) return !ipv4Refused.check(address, "ipv4")
  // Node takes an address with a zone ("fe80::1%eth0") for IPv6; a public address has none.
  if (!isIPv6(address) || address.includes("%")) return false
  return globalUnicast.check(address, "ipv6") && !ipv6Refused.check(address, "ipv6")
}

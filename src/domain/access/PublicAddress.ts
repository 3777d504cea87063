// Decides whether an IP address belongs to the public internet, before connecting to an address that a client chose.
// Pure. The tables are IANA's special-purpose address registries (RFC 6890 and successors). An address that is not in
// the plain form, or not clearly public, counts as not public.

/** [first address, prefix length] of the IPv4 blocks that are not the public internet. */
const IPV4_REFUSED: ReadonlyArray<readonly [string, number]> = [
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
const IPV6_REFUSED: ReadonlyArray<readonly [string, number]> = [
  ["2001::", 23], // protocol assignments, Teredo, ORCHID
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4
  ["3fff::", 20], // documentation
]

/** Four plain decimal numbers without leading zeros. Undefined for every other spelling of an address. */
const parseIpv4 = (text: string): bigint | undefined => {
  const parts = text.split(".")
  if (parts.length !== 4) return undefined
  let value = 0n
  for (const part of parts) {
    if (!/^(?:0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined
    value = (value << 8n) | BigInt(part)
  }
  return value
}

/** Groups of 16 bits; the last 32 bits of a whole address may be written as IPv4. */
const parseGroups = (text: string, last: boolean): ReadonlyArray<bigint> | undefined => {
  if (text === "") return []
  const groups: Array<bigint> = []
  const parts = text.split(":")
  for (const [i, part] of parts.entries()) {
    if (last && part.includes(".") && i === parts.length - 1) {
      const ipv4 = parseIpv4(part)
      if (ipv4 === undefined) return undefined
      groups.push(ipv4 >> 16n, ipv4 & 0xffffn)
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(BigInt(`0x${part}`))
    else return undefined
  }
  return groups
}

/** RFC 4291 text forms, without a zone. */
const parseIpv6 = (text: string): bigint | undefined => {
  const halves = text.split("::")
  if (halves.length > 2) return undefined
  const head = parseGroups(halves[0]!, halves.length === 1)
  const tail = halves.length === 2 ? parseGroups(halves[1]!, true) : []
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...head, ...Array.from({ length: missing }, () => 0n), ...tail]
  return groups.reduce((value, group) => (value << 16n) | group, 0n)
}

const within = (value: bigint, bits: number, block: bigint, prefix: number): boolean =>
  value >> BigInt(bits - prefix) === block >> BigInt(bits - prefix)

const ipv4Blocks = IPV4_REFUSED.map(([text, prefix]) => [parseIpv4(text)!, prefix] as const)
const ipv6Blocks = IPV6_REFUSED.map(([text, prefix]) => [parseIpv6(text)!, prefix] as const)
const globalUnicast = parseIpv6("2000::")!

/** @param address as a resolver returns it: no brackets, no port, no zone */
export const isPublicAddress = (address: string): boolean => {
  const ipv4 = parseIpv4(address)
  if (ipv4 !== undefined) return !ipv4Blocks.some(([block, prefix]) => within(ipv4, 32, block, prefix))
  const ipv6 = parseIpv6(address)
  if (ipv6 === undefined || !within(ipv6, 128, globalUnicast, 3)) return false
  return !ipv6Blocks.some(([block, prefix]) => within(ipv6, 128, block, prefix))
}

// Writes a MaxMind-format file (MaxMind DB 2.0): a binary trie over address bits, then the data it points to, then the
// metadata. Supports only the parts of the published format that the tests' databases use.

export type GeoValue = string | number | { readonly [name: string]: GeoValue } | ReadonlyArray<GeoValue>

/** Numbers are doubles in entries; the metadata's integers are written by their own function. */
const double = (value: number): Buffer => {
  const bytes = Buffer.alloc(9)
  bytes[0] = (3 << 5) | 8
  bytes.writeDoubleBE(value, 1)
  return bytes
}

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, "utf8")
  const head = bytes.length < 29 ? [(2 << 5) | bytes.length] : [(2 << 5) | 29, bytes.length - 29]
  return Buffer.concat([Buffer.from(head), bytes])
}

const map = (entries: ReadonlyArray<readonly [string, Buffer]>): Buffer =>
  Buffer.concat([
    Buffer.from([(7 << 5) | entries.length]),
    ...entries.flatMap(([name, value]) => [text(name), value]),
  ])

/** An array (type 11). Types above 7 are written as type 0 and a second byte with the type minus 7. */
const array = (values: ReadonlyArray<Buffer>): Buffer =>
  Buffer.concat([Buffer.from([values.length, 11 - 7]), ...values])

const encode = (value: GeoValue): Buffer => {
  if (typeof value === "string") return text(value)
  if (typeof value === "number") return double(value)
  if (Array.isArray(value)) return array(value.map(encode))
  return map(Object.entries(value).map(([name, each]) => [name, encode(each)] as const))
}

const uint16 = (value: number) => Buffer.from([(5 << 5) | 2, value >> 8, value & 255])
const uint32 = (value: number) => {
  const bytes = Buffer.from([(6 << 5) | 4, 0, 0, 0, 0])
  bytes.writeUInt32BE(value, 1)
  return bytes
}
const uint64 = (value: number) => Buffer.concat([Buffer.from([4, 9 - 7]), uint32(value).subarray(1)])

/** The 128 bits of an address, most significant first; IPv4 as `::a.b.c.d`, where the format keeps it. */
const bitsOf = (address: string): Array<0 | 1> => {
  const host = new URL(`http://[${address.includes(":") ? address : `::${address}`}]`).hostname.slice(1, -1)
  const [head = "", tail] = host.split("::")
  const left = head === "" ? [] : head.split(":")
  const right = tail === undefined || tail === "" ? [] : tail.split(":")
  const groups = [...left, ...new Array<string>(8 - left.length - right.length).fill("0"), ...right]
  return groups.flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return Array.from({ length: 16 }, (_, bit) => ((value >> (15 - bit)) & 1) as 0 | 1)
  })
}

type Trie = [Trie | number | undefined, Trie | number | undefined]

/** Address blocks (`192.0.2.0/24`, `2001:db8::/32`) → their data; blocks do not overlap. */
export const geoFile = (blocks: Readonly<Record<string, GeoValue>>): Buffer => {
  const root: Trie = [undefined, undefined]
  const data: Array<Buffer> = []
  let dataBytes = 0
  for (const [block, value] of Object.entries(blocks)) {
    const [address = "", prefix = ""] = block.split("/")
    const bits = bitsOf(address).slice(0, Number(prefix) + (address.includes(":") ? 0 : 96))
    const last = bits.pop()!
    let node = root
    for (const bit of bits) {
      const next: Trie | number = node[bit] ?? [undefined, undefined]
      if (typeof next === "number") throw new Error(`${block} overlaps`)
      node[bit] = next
      node = next
    }
    node[last] = dataBytes
    const bytes = encode(value)
    data.push(bytes)
    dataBytes += bytes.length
  }
  return assemble(root, Buffer.concat(data))
}

const assemble = (root: Trie, data: Buffer): Buffer => {
  const nodes: Array<Trie> = []
  const number = new Map<Trie, number>()
  const visit = (node: Trie): void => {
    number.set(node, nodes.length)
    nodes.push(node)
    for (const child of node) if (Array.isArray(child)) visit(child)
  }
  visit(root)
  const tree = Buffer.alloc(nodes.length * 8)
  for (const [i, node] of nodes.entries()) {
    for (const side of [0, 1] as const) {
      const child = node[side]
      // The node count itself means "no entry"; 16 zero bytes separate tree and data.
      const record =
        child === undefined
          ? nodes.length
          : typeof child === "number"
            ? nodes.length + 16 + child
            : number.get(child)!
      tree.writeUInt32BE(record, i * 8 + side * 4)
    }
  }
  const metadata = map([
    ["node_count", uint32(nodes.length)],
    ["record_size", uint16(32)],
    ["ip_version", uint16(6)],
    ["database_type", text("Made-Up-City")],
    ["languages", array([text("en")])],
    ["binary_format_major_version", uint16(2)],
    ["binary_format_minor_version", uint16(0)],
    ["build_epoch", uint64(1_700_000_000)],
    ["description", map([["en", text("Made up for tests")]])],
  ])
  const marker = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1")
  return Buffer.concat([tree, Buffer.alloc(16), data, marker, metadata])
}

// The tokens of a vocabulary as a tree over their bytes, written in depth-first order, so that a walk is one pass over
// arrays. One instance for each model.

interface TokenList {
  readonly size: number
  /** The bytes that a token adds to the text; none for control tokens. */
  readonly bytes: (token: number) => Uint8Array
  /** True if the token ends the reply. */
  readonly isEnd: (token: number) => boolean
}

const none: Uint8Array = new Uint8Array(0)

const compare = (a: Uint8Array, b: Uint8Array): number => {
  const most = Math.min(a.length, b.length)
  for (let at = 0; at < most; at++) if (a[at] !== b[at]) return a[at]! - b[at]!
  return a.length - b.length
}

/**
 * The numbers of the texts that are not empty, in the order of their bytes. Sorts numbers of the first four bytes and the
 * text's number, at most 2^20; only texts that begin alike are compared.
 */
const inOrder = (texts: ReadonlyArray<Uint8Array>): Int32Array => {
  const keys: Float64Array = Float64Array.from(
    texts,
    ([a = 0, b = 0, c = 0, d = 0], number) => ((a * 256 + b) * 256 + c) * 2 ** 28 + d * 2 ** 20 + number,
  ).filter((_, number) => texts[number]!.length > 0)
  keys.sort()
  const numbers = Int32Array.from(keys, (key) => key % 2 ** 20)
  const beginning = (at: number) => Math.floor(keys[at]! / 2 ** 20)
  for (let from = 0; from < keys.length; ) {
    let to = from + 1
    while (to < keys.length && beginning(to) === beginning(from)) to++
    if (to > from + 1) numbers.subarray(from, to).sort((a, b) => compare(texts[a]!, texts[b]!) || a - b)
    from = to
  }
  return numbers
}

/** Tokens that a slice of the work reads: about a millisecond. */
const sliceTokens = 1024

/** The texts of all tokens, `none` for those that end the reply. */
interface Texts {
  readonly texts: ReadonlyArray<Uint8Array>
  readonly ends: ReadonlyArray<number>
}

function* textsOf(list: TokenList): Generator<undefined, Texts> {
  const texts: Array<Uint8Array> = []
  const ends: Array<number> = []
  for (let token = 0; token < list.size; token++) {
    const end = list.isEnd(token)
    if (end) ends.push(token)
    texts.push(end ? none : list.bytes(token))
    if (token % sliceTokens === sliceTokens - 1) yield
  }
  return { texts, ends }
}

/** See the fields of TokenTrie; `children` of the root by their byte. */
interface Nodes {
  readonly byte: Uint8Array
  readonly depth: Uint16Array
  readonly behind: Int32Array
  readonly tokensFrom: Int32Array
  readonly children: Int32Array
}

function* nodesOf(
  texts: ReadonlyArray<Uint8Array>,
  sorted: Int32Array,
  bytes: number,
): Generator<undefined, Nodes> {
  const most = bytes + 1
  const byte = new Uint8Array(most)
  const depth = new Uint16Array(most)
  const behind = new Int32Array(most)
  const tokensFrom = new Int32Array(most + 1)
  const children = new Int32Array(256)
  /** The nodes above the next one, by depth. */
  const path: Array<number> = [0]
  let nodes = 1
  let last = none
  for (let at = 0; at < sorted.length; at++) {
    const text = texts[sorted[at]!]!
    let same = 0
    while (same < last.length && same < text.length && last[same] === text[same]) same++
    while (path.length > same + 1) behind[path.pop()!] = nodes
    for (let next = same; next < text.length; next++) {
      byte[nodes] = text[next]!
      depth[nodes] = next + 1
      tokensFrom[nodes] = at
      if (next === 0) children[text[0]!] = nodes
      path.push(nodes++)
    }
    last = text
    if (at % sliceTokens === sliceTokens - 1) yield
  }
  for (const node of path) behind[node] = nodes
  tokensFrom[nodes] = sorted.length
  return {
    byte: byte.slice(0, nodes),
    depth: depth.slice(0, nodes),
    behind: behind.slice(0, nodes),
    tokensFrom: tokensFrom.slice(0, nodes + 1),
    children,
  }
}

export class TokenTrie {
  readonly size: number
  /** Words of 32 bits that a set of tokens needs. */
  readonly words: number
  /** Bytes of the longest token. */
  readonly longest: number
  readonly ends: Uint32Array
  /** Tokens without text that do not end the reply. */
  readonly silent: Uint32Array
  /** Node 0 is the root. For each node: its byte, the number of bytes above and with it, and the node behind its last descendant. */
  readonly byte: Uint8Array
  readonly depth: Uint16Array
  readonly behind: Int32Array
  /** `tokensFrom[n]` to `tokensFrom[n + 1]` in `tokens`: the tokens that end at node n. */
  readonly tokensFrom: Int32Array
  readonly tokens: Int32Array
  /** 1 for each byte that is a token by itself. */
  readonly singleBytes: Uint8Array
  readonly #children: Int32Array
  readonly #from: Uint32Array
  readonly #bytes: Uint8Array

  /** Makes the tree in slices, one for each `next`: half a second for 151,936 tokens. */
  static *inSlices(list: TokenList): Generator<undefined, TokenTrie> {
    const { ends, texts } = yield* textsOf(list)
    const sorted = inOrder(texts)
    yield
    const bytes = texts.reduce((sum, { length }) => sum + length, 0)
    const nodes = yield* nodesOf(texts, sorted, bytes)
    return new TokenTrie({ texts, ends }, sorted, nodes)
  }

  /** Makes the whole tree at once. */
  static of(list: TokenList): TokenTrie {
    const slices = TokenTrie.inSlices(list)
    for (;;) {
      const slice = slices.next()
      if (slice.done === true) return slice.value
    }
  }

  private constructor({ ends, texts }: Texts, sorted: Int32Array, nodes: Nodes) {
    const { length: size } = texts
    this.size = size
    this.words = (size + 31) >> 5
    this.ends = new Uint32Array(this.words)
    this.silent = new Uint32Array(this.words)
    for (const token of ends) add(this.ends, token)
    this.#from = new Uint32Array(size + 1)
    let longest = 1
    for (let token = 0; token < size; token++) {
      const { length } = texts[token]!
      this.#from[token + 1] = this.#from[token]! + length
      longest = Math.max(longest, length)
      if (length === 0 && !has(this.ends, token)) add(this.silent, token)
    }
    this.longest = longest
    this.#bytes = new Uint8Array(this.#from[size]!)
    for (let token = 0; token < size; token++) this.#bytes.set(texts[token]!, this.#from[token])
    this.tokens = sorted
    this.byte = nodes.byte
    this.depth = nodes.depth
    this.behind = nodes.behind
    this.tokensFrom = nodes.tokensFrom
    this.#children = nodes.children
    this.singleBytes = new Uint8Array(256).map((_, each) => (this.tokenAt(this.child(0, each)) >= 0 ? 1 : 0))
  }

  get nodes(): number {
    return this.byte.length
  }

  /** The bytes of a token that is not an end token. */
  bytesOf(token: number): Uint8Array {
    return this.#bytes.subarray(this.#from[token], this.#from[token + 1])
  }

  isEnd(token: number): boolean {
    return has(this.ends, token)
  }

  /** The node after another byte; -1 if no token goes on so. */
  child(node: number, byte: number): number {
    if (node === 0) return this.#children[byte]! || -1
    const behind = this.behind[node]!
    for (let child = node + 1; child < behind && this.byte[child]! <= byte; child = this.behind[child]!)
      if (this.byte[child] === byte) return child
    return -1
  }

  /** A token that ends at the node; -1 if there is none. */
  tokenAt(node: number): number {
    if (node < 0) return -1
    const first = this.tokensFrom[node]!
    return first < this.tokensFrom[node + 1]! ? this.tokens[first]! : -1
  }
}

export const add = (set: Uint32Array, token: number): void => {
  set[token >> 5] = set[token >> 5]! | (1 << (token & 31))
}

const has = (set: Uint32Array, token: number): boolean => ((set[token >> 5]! >>> (token & 31)) & 1) === 1

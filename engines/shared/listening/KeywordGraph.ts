// The phrases that a request names, as a graph that a decoder can follow token by token. Built once for a list of phrases. Pure.
//
// The graph is a trie over the bytes of the phrases, because a model may spell a phrase with different tokens. From a node lead all tokens
// whose bytes lie on a path of the trie. They are found when a node is first visited, so most nodes of a long list are never expanded.

/** The texts of a model's tokens, by which phrases are spelled. Made once for a model. */
export class TokenSpellings {
  readonly #bytes: ReadonlyArray<Uint8Array>
  /** Bytes as Latin-1 text → the tokens that spell them. */
  readonly #tokens = new Map<string, Array<number>>()
  readonly longest: number
  readonly #goesOn: Uint8Array
  /** A vocabulary may have letters of one case only. */
  readonly #cases: "upper" | "lower" | "both"

  /** @param bytes UTF-8 of each token with the space before a word, by id; empty for tokens that are no text */
  constructor(bytes: ReadonlyArray<Uint8Array>) {
    this.#bytes = bytes
    this.#goesOn = Uint8Array.from(bytes, ([first = space]) =>
      goesOn.test(String.fromCharCode(first)) ? 1 : 0,
    )
    let longest = 0
    let [lower, upper] = [false, false]
    for (const [token, spelled] of bytes.entries()) {
      if (spelled.length === 0) continue
      longest = Math.max(longest, spelled.length)
      const text = Buffer.from(spelled).toString("latin1")
      lower ||= /[a-z]/.test(text)
      upper ||= /[A-Z]/.test(text)
      const same = this.#tokens.get(text)
      if (same === undefined) this.#tokens.set(text, [token])
      else same.push(token)
    }
    this.longest = Math.min(longest, longestToken)
    this.#cases = lower === upper ? "both" : lower ? "lower" : "upper"
  }

  bytesOf(token: number): Uint8Array {
    return this.#bytes[token] ?? nothing
  }

  /** Whether the token goes on with a word: it begins with a letter or a digit. */
  goesOn(token: number): boolean {
    return this.#goesOn[token] === 1
  }

  tokensOf(latin1: string): ReadonlyArray<number> {
    return this.#tokens.get(latin1) ?? []
  }

  /** A phrase as the model may write it: it need not know that a name has a capital. */
  spell(phrase: string): ReadonlyArray<string> {
    const text = tidied(phrase)
    if (this.#cases === "upper") return [text.toUpperCase()]
    const lower = text.toLowerCase()
    return this.#cases === "lower" || lower === text ? [lower] : [text, lower]
  }
}

const space = 0x20

/** In one normal form, with single spaces. */
const tidied = (phrase: string): string => phrase.normalize("NFC").trim().replace(/\s+/gu, " ")

const nothing = new Uint8Array(0)
/** First byte of a token inside a word. */
const goesOn = /[\p{L}\p{N}\u0080-\u00ff]/u
/** Bytes of the longest token that is searched: tokens that hold more of a phrase are rare. A guess. */
const longestToken = 24

/** Scripts that put no space between words: their phrases begin anywhere. */
const unspaced =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u

/** Values of a node's end: of words with spaces between them, and of other scripts. */
const [endOfWord, endAnywhere] = [1, 2]
const utf8 = new TextEncoder()

/** Finds whole words, the longest text first. */
const anyOf = (texts: ReadonlyArray<string>): RegExp => {
  const all = [...texts]
    .sort((a, b) => b.length - a.length)
    .map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&"))
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${all.join("|")})(?![\\p{L}\\p{N}])`, "giu")
}

/** A token that goes on in a phrase. */
interface KeywordStep {
  readonly token: number
  readonly node: number
}

export class KeywordGraph {
  /** Before any byte of a phrase. */
  static readonly root = 0
  /** Behind a space, which is where a text begins. */
  readonly start: number
  readonly spellings: TokenSpellings
  // By node.
  readonly #firstChild: Int32Array
  readonly #nextSibling: Int32Array
  readonly #byte: Uint8Array
  readonly #characters: Uint8Array
  readonly #isEnd: Uint8Array
  readonly #steps = new Map<number, ReadonlyArray<KeywordStep>>()
  /** Phrases with capitals by their small letters, and a pattern that finds them in any case. */
  readonly #written: ReadonlyMap<string, string>
  #pattern: RegExp | undefined

  constructor(phrases: ReadonlyArray<string>, spellings: TokenSpellings) {
    this.spellings = spellings
    const texts = phrases.map(tidied).filter((text) => text !== text.toLowerCase())
    this.#written = new Map(texts.map((text) => [text.toLowerCase(), text]))
    const spelled = phrases
      .flatMap((phrase) => spellings.spell(phrase))
      .map((text) => utf8.encode(unspaced.test(text) ? text : ` ${text}`))
    const most = 1 + spelled.reduce((sum, bytes) => sum + bytes.length, 0)
    this.#firstChild = new Int32Array(most).fill(-1)
    this.#nextSibling = new Int32Array(most).fill(-1)
    this.#byte = new Uint8Array(most)
    this.#characters = new Uint8Array(most)
    this.#isEnd = new Uint8Array(most)
    let nodes = 1
    for (const bytes of spelled) {
      let at: number = KeywordGraph.root
      for (const [i, byte] of bytes.entries()) {
        let child = this.#childOf(at, byte)
        if (child === -1) {
          child = nodes++
          this.#byte[child] = byte
          this.#nextSibling[child] = this.#firstChild[at]!
          this.#firstChild[at] = child
          const isCharacter = (byte & 0xc0) !== 0x80 && !(i === 0 && byte === space)
          this.#characters[child] = this.#characters[at]! + (isCharacter ? 1 : 0)
        }
        at = child
      }
      if (at !== KeywordGraph.root) this.#isEnd[at] = bytes[0] === space ? endOfWord : endAnywhere
    }
    this.start = Math.max(KeywordGraph.root, this.#childOf(KeywordGraph.root, space))
  }

  #childOf(node: number, byte: number): number {
    let child = this.#firstChild[node]!
    while (child !== -1 && this.#byte[child] !== byte) child = this.#nextSibling[child]!
    return child
  }

  /** Whether a phrase ends here. */
  isEnd(node: number): boolean {
    return this.#isEnd[node] !== 0
  }

  /** Whether a phrase ends here even if letters follow. */
  isEndAnywhere(node: number): boolean {
    return this.#isEnd[node] === endAnywhere
  }

  /** Characters of the phrase until here, without the space before it. */
  charactersOf(node: number): number {
    return this.#characters[node]!
  }

  /** The node behind a token; undefined if no phrase goes on like that. */
  after(node: number, token: number): number | undefined {
    const bytes = this.spellings.bytesOf(token)
    let at = node
    for (const byte of bytes) {
      at = this.#childOf(at, byte)
      if (at === -1) return undefined
    }
    return bytes.length === 0 ? undefined : at
  }

  /** The text with the capitals that its phrases have. */
  written(text: string): string {
    if (this.#written.size === 0) return text
    this.#pattern ??= anyOf([...this.#written.keys()])
    return text.replaceAll(this.#pattern, (found) => this.#written.get(found.toLowerCase()) ?? found)
  }

  /** All tokens with which a phrase goes on. */
  stepsFrom(node: number): ReadonlyArray<KeywordStep> {
    const known = this.#steps.get(node)
    if (known !== undefined) return known
    const steps: Array<KeywordStep> = []
    const walk = (from: number, before: string): void => {
      for (let child = this.#firstChild[from]!; child !== -1; child = this.#nextSibling[child]!) {
        const text = before + String.fromCharCode(this.#byte[child]!)
        for (const token of this.spellings.tokensOf(text)) steps.push({ token, node: child })
        if (text.length < this.spellings.longest) walk(child, text)
      }
    }
    walk(node, "")
    this.#steps.set(node, steps)
    return steps
  }
}

/** Graphs that are kept for an engine's next requests: a live session sends the same phrases again and again. */
const keptGraphs = 4

/** The graphs of an engine's last requests, by their phrases. */
export class KeywordGraphs {
  readonly #spellingsOf: () => TokenSpellings
  #spellings: TokenSpellings | undefined
  /** In the order of their last use. */
  readonly #kept = new Map<string, KeywordGraph>()

  /** @param spellingsOf is called with the first request that has phrases */
  constructor(spellingsOf: () => TokenSpellings) {
    this.#spellingsOf = spellingsOf
  }

  /** Undefined without phrases. */
  of(phrases: ReadonlyArray<string> | undefined): KeywordGraph | undefined {
    if (phrases === undefined || phrases.length === 0) return undefined
    const key = phrases.join("\n")
    this.#spellings ??= this.#spellingsOf()
    const graph = this.#kept.get(key) ?? new KeywordGraph(phrases, this.#spellings)
    this.#kept.delete(key)
    this.#kept.set(key, graph)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= keptGraphs) break
      this.#kept.delete(oldest)
    }
    return graph
  }
}

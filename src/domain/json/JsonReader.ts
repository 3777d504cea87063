// Reads JSON from bytes, a part at a time, so that a large body or event does not hold the event loop. Gives what `JSON.parse` gives
// of the same bytes as UTF-8, and refuses what `JSON.parse` refuses; besides it refuses values that are expensive to use. Pure.
//
// Long texts are found and copied by native code, in pieces. What is left to JavaScript costs about as much as `JSON.parse` for each
// value.
import { isAscii } from "node:buffer"
import { maxDepth, maxKeys, maxNumberChars, maxValues, type Parsed, problems } from "./JsonLimits.ts"

type Container = Array<unknown> | Record<string, unknown>

/** Where a value stands: keys of objects and indexes of lists, from the outside. */
type JsonPath = ReadonlyArray<string | number>

/**
 * Whether a long text at this path, which begins like this, stays bytes (UTF-8, without escapes). Asked for texts of at least
 * `keptFrom` bytes. They cost nothing: mostly they are a part of the memory that is read.
 */
export type KeepsBytes = (path: JsonPath, beginning: string) => boolean

/** Shorter texts are texts wherever they stand, bytes. */
export const keptFrom = 4_096

/** Bytes of a text's beginning, as they are sent. */
const beginningBytes = 16

const quoteByte = 0x22
const backslash = 0x5c
const zero = 0x30
const nine = 0x39
const minus = 0x2d

/** Bytes of a text that are looked at one by one before native code takes over: calling it costs as much. A guess. */
const shortBytes = 128
/** Bytes of a long text that are read at a time: 0.5 ms where they are not ASCII (measured). */
const pieceBytes = 64 * 1024
/** Bytes or blanks between two looks at the clock; a value counts as so many. Together about 20 µs. */
const workBetween = 16_384
const workOfValue = 512
/** Digits that are read as a whole number without rounding. */
const exactDigits = 15

/** What no text of JSON has unescaped: what comes before the space. */
const control = /[^ -\uffff]/
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** What may come next. */
const next = { value: 0, itemOrEnd: 1, keyOrEnd: 2, key: 3, colon: 4, commaOrEnd: 5, nothing: 6 } as const

const literals = [
  { bytes: Buffer.from("true"), value: true },
  { bytes: Buffer.from("false"), value: false },
  { bytes: Buffer.from("null"), value: null },
] as const

/** Sets a key as `JSON.parse` does: a plain assignment of this one would set the prototype. */
const setPrototypeKey = (of: Record<string, unknown>, value: unknown): void => {
  Object.defineProperty(of, "__proto__", { value, configurable: true, enumerable: true, writable: true })
}

/** A text that is longer than `shortBytes`, or has escapes, or is not ASCII. */
class LongText {
  readonly #bytes: Buffer
  readonly #from: number
  /** What is read so far. */
  at: number
  /** No escapes, and ASCII. */
  #isPlain = true
  /** What is read so far; empty while it is plain. */
  #text = ""
  isValid = true
  /** The closing quote is read. */
  hasEnded = false

  constructor(bytes: Buffer, from: number) {
    this.#bytes = bytes
    this.#from = from
    this.at = from
  }

  get sizeBytes(): number {
    return this.at - this.#from - 1
  }

  /** Reads a piece, to the closing quote or to a place between two characters. */
  step(): void {
    const { at } = this
    const window = this.#bytes.subarray(at, at + pieceBytes)
    const quote = quoteIn(window)
    if (quote < 0 && at + pieceBytes >= this.#bytes.length) {
      this.isValid = false
      return
    }
    const size = quote < 0 ? betweenCharacters(window) : quote
    const piece = window.subarray(0, size)
    const isPlain = isAscii(piece)
    const raw = piece.toString(isPlain ? "latin1" : "utf8")
    const escaped = raw.includes("\\")
    if (control.test(raw)) this.isValid = false
    else if (this.#isPlain && isPlain && !escaped) {
      // Copied at the end, as one text: pieces would be joined then, which copies them again.
    } else {
      if (this.#isPlain) this.#text = this.#bytes.toString("latin1", this.#from, at)
      this.#isPlain = false
      const read = escaped ? unescaped(raw) : raw
      if (read === undefined) this.isValid = false
      else this.#text += read
    }
    this.at = at + size
    if (quote < 0) return
    this.hasEnded = true
    this.at++
  }

  get beginning(): string {
    return this.#bytes.toString("latin1", this.#from, this.#from + beginningBytes)
  }

  /** The whole text. */
  get text(): string {
    return this.#isPlain ? this.#bytes.toString("latin1", this.#from, this.at - 1) : this.#text
  }

  /** The whole text in UTF-8. */
  get utf8(): Uint8Array {
    return this.#isPlain ? this.#bytes.subarray(this.#from, this.at - 1) : Buffer.from(this.#text)
  }
}

/** Number of backslashes that end before `at`. */
const backslashesBefore = (window: Buffer, at: number): number => {
  let from = at
  while (from > 0 && window[from - 1] === backslash) from--
  return at - from
}

/** Position of the quote that ends a text, of which a window begins between two characters. -1 if it is not in the window. */
const quoteIn = (window: Buffer): number => {
  let at = window.indexOf(quoteByte)
  while (at >= 0 && backslashesBefore(window, at) % 2 === 1) at = window.indexOf(quoteByte, at + 1)
  return at
}

/** The longest escape, `\u0000`, bytes. */
const escapeBytes = 6

/** The last place of a window that is neither inside of an escape nor of a character. */
const betweenCharacters = (window: Buffer): number => {
  const { length } = window
  const last = window.lastIndexOf(backslash)
  if (last > length - escapeBytes && backslashesBefore(window, last) % 2 === 0) return last
  // UTF-8: 10xxxxxx continues a character, at most three times.
  for (let back = 1; back <= 4; back++) {
    const byte = window[length - back]!
    if (byte >= 0xc0) return length - back
    if (byte < 0x80) break
  }
  return length
}

const unescaped = (piece: string): string | undefined => {
  try {
    return JSON.parse(`"${piece}"`) as string
  } catch {
    return undefined
  }
}

/** The number that the text is; undefined if it is none. */
const numberOf = (text: string): number | undefined => (number.test(text) ? Number(text) : undefined)

const isNumberByte = (byte: number): boolean =>
  (byte >= zero && byte <= nine) ||
  byte === minus ||
  byte === 0x2b ||
  byte === 0x2e ||
  byte === 0x45 ||
  byte === 0x65

/** Steps of a path that a problem names, and characters of each key. */
const named = { steps: 4, characters: 40 }

export class JsonReader {
  readonly #bytes: Buffer
  readonly #keeps: KeepsBytes | undefined
  #at: number
  #next: number = next.value
  /** Containers that are open, the outermost first, and the present key of each; undefined for lists. */
  readonly #open: Array<Container> = []
  readonly #keys: Array<string | undefined> = []
  /** Keys of each so far, those that come twice counted twice. */
  readonly #counts: Array<number> = []
  #long: LongText | undefined
  #longIsKey = false
  #commas = 0
  #root: unknown
  #problem: string | undefined
  #work = 0
  /** Bytes of the texts that stayed bytes. */
  keptBytes = 0

  constructor(bytes: Uint8Array, keeps?: KeepsBytes) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#keeps = keeps
    const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
    this.#at = marked ? 3 : 0
  }

  /** Reads on until `isOver`, which is asked now and then. The value, or what is wrong with it; undefined if there is more to read. */
  read(isOver: () => boolean): Parsed | undefined {
    while (this.#problem === undefined) {
      if (this.#long !== undefined) this.#readLong(this.#long)
      else if (!this.#readNext()) return { value: this.#root }
      if (this.#work < workBetween) continue
      this.#work = 0
      if (isOver()) return this.#problem === undefined ? undefined : { problem: this.#problem }
    }
    return { problem: this.#problem }
  }

  // ---------------------------------------------------------------- one step

  /** Reads a bracket, a comma, a colon or a value. False at the end of everything. */
  #readNext(): boolean {
    const byte = this.#afterBlanks()
    if (byte === undefined) return true
    this.#work += workOfValue
    switch (this.#next) {
      case next.nothing:
        if (byte >= 0) this.#fail(problems.invalid)
        return byte >= 0
      case next.commaOrEnd:
        this.#readComma(byte)
        return true
      case next.colon:
        if (byte !== 0x3a) this.#fail(problems.invalid)
        this.#at++
        this.#next = next.value
        return true
      case next.keyOrEnd:
        if (byte === 0x7d) this.#close()
        else this.#readKey(byte)
        return true
      case next.key:
        this.#readKey(byte)
        return true
      case next.itemOrEnd:
        if (byte === 0x5d) this.#close()
        else this.#readValue(byte)
        return true
      default:
        this.#readValue(byte)
        return true
    }
  }

  /** The next byte that is no blank, which is not taken; -1 at the end, undefined where there are more blanks than in one step. */
  #afterBlanks(): number | undefined {
    const bytes = this.#bytes
    const end = Math.min(bytes.length, this.#at + workBetween)
    let at = this.#at
    for (; at < end; at++) {
      const byte = bytes[at]!
      if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue
      this.#at = at
      return byte
    }
    this.#work += at - this.#at
    this.#at = at
    return at < bytes.length ? undefined : -1
  }

  #readComma(byte: number): void {
    const list = Array.isArray(this.#open.at(-1))
    if (byte === (list ? 0x5d : 0x7d)) return this.#close()
    if (byte !== 0x2c) return this.#fail(problems.invalid)
    this.#at++
    if (++this.#commas > maxValues) return this.#fail(problems.tooManyValues)
    this.#next = list ? next.value : next.key
  }

  #readKey(byte: number): void {
    if (byte !== quoteByte) return this.#fail(problems.invalid)
    const depth = this.#open.length - 1
    const count = this.#counts[depth]! + 1
    if (count > maxKeys) return this.#fail(problems.tooManyKeys)
    this.#counts[depth] = count
    const key = this.#readShort()
    if (key !== undefined) return this.#tookKey(key)
    this.#long = new LongText(this.#bytes, this.#at + 1)
    this.#longIsKey = true
  }

  #tookKey(key: string): void {
    this.#keys[this.#open.length - 1] = key
    this.#next = next.colon
  }

  #readValue(byte: number): void {
    if (byte === quoteByte) {
      const text = this.#readShort()
      if (text !== undefined) return this.#put(text)
      this.#long = new LongText(this.#bytes, this.#at + 1)
      this.#longIsKey = false
      return
    }
    if (byte === 0x7b || byte === 0x5b) return this.#openContainer(byte === 0x5b)
    if (byte === minus || (byte >= zero && byte <= nine)) return this.#readNumber()
    for (const { bytes, value } of literals) {
      if (bytes[0] !== byte) continue
      const end = this.#at + bytes.length
      if (bytes.compare(this.#bytes, this.#at, Math.min(end, this.#bytes.length)) !== 0) break
      this.#at = end
      return this.#put(value)
    }
    this.#fail(problems.invalid)
  }

  /** A text that is short, plain ASCII and has no escapes, from its opening quote; undefined if it is another one. */
  #readShort(): string | undefined {
    const bytes = this.#bytes
    const from = this.#at + 1
    const end = Math.min(bytes.length, from + shortBytes)
    for (let at = from; at < end; at++) {
      const byte = bytes[at]!
      if (byte === quoteByte) {
        this.#at = at + 1
        return at === from ? "" : bytes.toString("latin1", from, at)
      }
      if (byte === backslash || byte < 0x20 || byte >= 0x80) return undefined
    }
    return undefined
  }

  #readLong(long: LongText): void {
    const { at } = long
    long.step()
    this.#work += workOfValue + (long.at - at)
    if (!long.isValid) return this.#fail(problems.invalid)
    if (!long.hasEnded) return
    this.#long = undefined
    this.#at = long.at
    if (this.#longIsKey) return this.#tookKey(long.text)
    const { sizeBytes } = long
    const isKept = sizeBytes >= keptFrom && this.#keeps?.(this.#path(), long.beginning) === true
    if (isKept) this.keptBytes += sizeBytes
    this.#put(isKept ? long.utf8 : long.text)
  }

  #readNumber(): void {
    const bytes = this.#bytes
    const from = this.#at
    const isNegative = bytes[from] === minus
    const digits = isNegative ? from + 1 : from
    let at = digits
    let value = 0
    for (; at < bytes.length && at - digits < exactDigits; at++) {
      const byte = bytes[at]!
      if (byte < zero || byte > nine) break
      value = value * 10 + (byte - zero)
    }
    const isWhole = at > digits && (at - digits === 1 || bytes[digits] !== zero)
    if (isWhole && (at >= bytes.length || !isNumberByte(bytes[at]!))) {
      this.#at = at
      return this.#put(isNegative ? -value : value)
    }
    const end = Math.min(bytes.length, from + maxNumberChars + 1)
    while (at < end && isNumberByte(bytes[at]!)) at++
    if (at - from > maxNumberChars) return this.#fail(problems.longNumber)
    const read = numberOf(bytes.toString("latin1", from, at))
    if (read === undefined) return this.#fail(problems.invalid)
    this.#at = at
    this.#put(read)
  }

  // ---------------------------------------------------------------- containers

  #openContainer(isList: boolean): void {
    if (this.#open.length === maxDepth) return this.#fail(problems.tooDeep(this.#namedPath()))
    const container: Container = isList ? [] : {}
    this.#put(container)
    this.#open.push(container)
    this.#keys.push(undefined)
    this.#counts.push(0)
    this.#at++
    this.#next = isList ? next.itemOrEnd : next.keyOrEnd
  }

  #close(): void {
    this.#open.pop()
    this.#keys.pop()
    this.#counts.pop()
    this.#at++
    this.#next = this.#open.length === 0 ? next.nothing : next.commaOrEnd
  }

  /** Puts a value where it belongs. A list or an object is put there while it is empty. */
  #put(value: unknown): void {
    const depth = this.#open.length - 1
    const container = this.#open[depth]
    if (container === undefined) {
      this.#root = value
      this.#next = next.nothing
      return
    }
    this.#next = next.commaOrEnd
    if (Array.isArray(container)) {
      container.push(value)
      return
    }
    const key = this.#keys[depth]!
    if (key === "__proto__") setPrototypeKey(container, value)
    else container[key] = value
  }

  #fail(problem: string): void {
    this.#problem ??= problem
  }

  /** Of the value that comes next. */
  #path(): JsonPath {
    return this.#open.map((container, depth) => this.#keys[depth] ?? (container as Array<unknown>).length)
  }

  /** The beginning of the path to what nests too deep; empty if its root is a list. */
  #namedPath(): string {
    if (Array.isArray(this.#open[0])) return ""
    return this.#open
      .slice(0, named.steps)
      .map((container, depth) =>
        Array.isArray(container)
          ? `[${container.length - 1}]`
          : `.${(this.#keys[depth] ?? "").slice(0, named.characters)}`,
      )
      .join("")
      .slice(1)
  }
}

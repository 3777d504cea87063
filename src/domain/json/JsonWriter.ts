// Writes JSON as UTF-8, a part at a time, so that a large event does not hold the event loop. Gives what `JSON.stringify` gives of a
// plain value: texts, numbers, booleans, null, lists and objects; a key whose value is undefined is left out. Pure.

/** Characters of a text that are written at a time: 0.1 ms. */
const pieceChars = 16_384

/** Characters after which what is written becomes bytes. */
const flushChars = 65_536

/** Whether a value has more characters and values than this, each counted as one. Looks at no more of it. */
export const isLarge = (value: unknown, most: number): boolean => sizeUpTo(value, most) > most

/** Characters and values of a value, each counted as one; some number above `most` if there are more. */
export const sizeUpTo = (value: unknown, most: number): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 1
  let size = 1
  for (const key in value) {
    if (size > most) break
    size += sizeUpTo((value as Record<string, unknown>)[key], most - size)
  }
  return size
}

/** Position at or before `to` that is not inside of a pair of surrogates: alone they would be escaped. */
const betweenPairs = (text: string, to: number): number => {
  const code = text.charCodeAt(to - 1)
  return to < text.length && code >= 0xd800 && code < 0xdc00 ? to - 1 : to
}

/** A list or an object of which a part is written. */
interface Level {
  readonly of: Readonly<Record<string, unknown>> | ReadonlyArray<unknown>
  /** Undefined for a list. */
  readonly keys: ReadonlyArray<string> | undefined
  at: number
  isEmpty: boolean
}

export class JsonWriter {
  readonly #levels: Array<Level> = []
  #text: string | undefined
  #textAt = 0
  #out = ""
  readonly #made: Array<Buffer> = []

  constructor(value: unknown) {
    this.#begin(value)
  }

  /** Writes on until `isOver`. All parts in their order; undefined if there is more to write. */
  write(isOver: () => boolean): ReadonlyArray<Uint8Array> | undefined {
    for (let count = 1; this.#step(); count++) {
      if (this.#out.length >= flushChars) this.#flush()
      // A look at the clock costs as much as some values.
      if ((count % 16 === 0 || this.#text !== undefined) && isOver()) return undefined
    }
    this.#flush()
    return this.#made
  }

  #flush(): void {
    if (this.#out !== "") this.#made.push(Buffer.from(this.#out))
    this.#out = ""
  }

  /** False at the end. */
  #step(): boolean {
    if (this.#text !== undefined) {
      this.#writeText(this.#text)
      return true
    }
    const level = this.#levels.at(-1)
    if (level === undefined) return false
    const { keys, of } = level
    const at = level.at++
    const { length } = keys ?? (of as ReadonlyArray<unknown>)
    if (at >= length) {
      this.#out += keys === undefined ? "]" : "}"
      this.#levels.pop()
      return true
    }
    const key = keys?.[at]
    const value: unknown =
      key === undefined ? (of as ReadonlyArray<unknown>)[at] : (of as Record<string, unknown>)[key]
    if (key !== undefined && value === undefined) return true
    if (!level.isEmpty) this.#out += ","
    level.isEmpty = false
    if (key !== undefined) this.#out += `${JSON.stringify(key)}:`
    this.#begin(value)
    return true
  }

  #begin(value: unknown): void {
    if (typeof value === "string" && value.length > pieceChars) {
      this.#out += '"'
      this.#text = value
      this.#textAt = 0
    } else if (Array.isArray(value)) {
      this.#out += "["
      this.#levels.push({ of: value, keys: undefined, at: 0, isEmpty: true })
    } else if (typeof value === "object" && value !== null) {
      this.#out += "{"
      const of = value as Record<string, unknown>
      this.#levels.push({ of, keys: Object.keys(of), at: 0, isEmpty: true })
    } else this.#out += JSON.stringify(value) ?? "null"
  }

  #writeText(text: string): void {
    const to = betweenPairs(text, Math.min(text.length, this.#textAt + pieceChars))
    this.#out += JSON.stringify(text.slice(this.#textAt, to)).slice(1, -1)
    this.#textAt = to
    if (to < text.length) return
    this.#out += '"'
    this.#text = undefined
  }
}

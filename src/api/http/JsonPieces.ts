// A large JSON value in pieces, to pass it between threads: receiving it whole would hold the event loop, for up to 75 ms with the
// most keys that a body may have (measured). Pure.

/** Values in a piece. Receiving so many takes up to 2 ms (measured: 0.8 µs for a value with a key of its own). */
const pieceValues = 2_000

/**
 * Keys of one object. Making and listing an object of 90,000 keys held the event loop for 48 ms (measured), however it came there.
 */
export const maxKeys = 8_192

/** Entries of one list or object. */
export interface JsonPiece {
  /** Number of the list or object that the entries belong to; 0 holds the whole value as its only item. */
  readonly into: number
  /** Of the values. Absent: they follow each other in a list. */
  readonly keys?: ReadonlyArray<string>
  readonly values: ReadonlyArray<unknown>
  /**
   * Which of the values are too large for a piece. They stand here as empty lists and objects, get the next numbers in this order,
   * and their entries come in pieces of their own.
   */
  readonly opened: ReadonlyArray<number>
}

type Container = ReadonlyArray<unknown> | Readonly<Record<string, unknown>>

/** Bytes stand for pictures, and pass as one value. */
const isContainer = (value: unknown): value is Container =>
  typeof value === "object" && value !== null && !(value instanceof Uint8Array)

/** True if an object has too many keys. Recursive, like all that follows: JSON texts nest 128 levels deep at most. */
export const hasManyKeys = (value: unknown): boolean => {
  if (!isContainer(value)) return false
  const items = Array.isArray(value) ? value : Object.values(value)
  return (items.length > maxKeys && !Array.isArray(value)) || items.some(hasManyKeys)
}

/** Counts the values inside each container that has more than a piece. */
const countLarge = (value: unknown, large: Map<Container, number>): number => {
  if (!isContainer(value)) return 1
  let count = 1
  for (const item of Array.isArray(value) ? value : Object.values(value)) count += countLarge(item, large)
  if (count > pieceValues) large.set(value, count)
  return count
}

/** Values of a piece, without those that are inside large ones. */
const sizeOf = (value: unknown, large: ReadonlyMap<Container, number>): number => {
  if (!isContainer(value) || large.has(value)) return 1
  let count = 1
  for (const item of Array.isArray(value) ? value : Object.values(value)) count += sizeOf(item, large)
  return count
}

export function* piecesOf(whole: unknown): Generator<JsonPiece> {
  const large = new Map<Container, number>()
  countLarge(whole, large)
  const containers: Array<Container> = [[whole]]
  for (let into = 0; into < containers.length; into++) {
    const container = containers[into]!
    const all: ReadonlyArray<readonly [string, unknown]> = Object.entries(container)
    for (let from = 0; from < all.length; ) {
      const keys: Array<string> = []
      const values: Array<unknown> = []
      const opened: Array<number> = []
      for (let size = 0; from < all.length && size < pieceValues; from++) {
        const [key, value] = all[from]!
        keys.push(key)
        size += sizeOf(value, large)
        if (isContainer(value) && large.has(value)) {
          containers.push(value)
          opened.push(values.length)
          values.push(Array.isArray(value) ? [] : {})
        } else values.push(value)
      }
      yield { into, values, opened, ...(Array.isArray(container) ? {} : { keys }) }
    }
  }
}

/** Puts the pieces of a value together, in their order. */
export class JsonAssembly {
  readonly #holder: Array<unknown> = []
  readonly #containers: Array<Record<string, unknown> | Array<unknown>> = [this.#holder]

  add({ into, keys, opened, values }: JsonPiece): void {
    const container = this.#containers[into]
    if (container === undefined) throw new Error("a piece of a list or object that was not opened")
    for (const at of opened) this.#containers.push(values[at] as Record<string, unknown> | Array<unknown>)
    if (Array.isArray(container)) for (const value of values) container.push(value)
    else
      for (const [at, key] of (keys ?? []).entries()) {
        // As JSON.parse does: a plain assignment would set the prototype.
        if (key === "__proto__")
          Object.defineProperty(container, key, {
            value: values[at],
            configurable: true,
            enumerable: true,
            writable: true,
          })
        else container[key] = values[at]
      }
  }

  get value(): unknown {
    return this.#holder[0]
  }
}

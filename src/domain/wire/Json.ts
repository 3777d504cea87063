// The values that `JSON.parse` gives: their types, and the memory they take. Pure.

export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

/** Of JSON that was parsed: what an object holds needs no check. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What each value costs besides its characters, bytes: a small object, a number, or the head of a text. A guess from V8's sizes. */
const valueBytes = 64

/** Bytes of a text. V8 keeps one beyond Latin-1 with two bytes a character. */
const textBytes = (text: string): number => (Buffer.byteLength(text) === text.length ? 1 : 2) * text.length

/**
 * Memory of a decoded value, bytes: 64 for each value in it, and a byte for each character of its texts and keys; two for those of
 * a text that is not ASCII. Counts no further than `most`.
 */
export const memoryOf = (value: unknown, most = Number.POSITIVE_INFINITY): number => {
  let bytes = valueBytes
  if (typeof value === "string") return bytes + textBytes(value)
  if (typeof value !== "object" || value === null) return bytes
  if (Array.isArray(value)) {
    for (const item of value) {
      if (bytes > most) break
      bytes += memoryOf(item, most - bytes)
    }
    return bytes
  }
  for (const key in value) {
    if (bytes > most) break
    const item = (value as JsonObject)[key]
    if (item !== undefined) bytes += key.length + memoryOf(item, most - bytes)
  }
  return bytes
}

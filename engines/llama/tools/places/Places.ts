// Keeps the template's text and the callers' texts apart while a template is rendered. A caller's text is replaced by a mark,
// or, where the template reads it, marks are put around what would become a special token.
//
// A mark has 20 random digits, so no caller can write it. It holds a quotation mark, which shows whether the template printed
// it as JSON.
import { randomInt } from "node:crypto"
import type { Json, JsonObject } from "#domain/wire/Json.ts"
import type { Spellings } from "./Spellings.ts"

/** A part of the prompt. Special tokens are recognised only in what the template wrote. */
export interface PromptPart {
  readonly text: string
  readonly byTemplate: boolean
  /** A picture stands here, of which the request has this index; the text is empty. */
  readonly picture?: number
}

/** `content` is tokenized on its own; `text` and `json` together with the template's text around them. */
type Kind = "content" | "text" | "json" | "picture"

/** Marks are sorted in the order in which they were made, also by a template that sorts keys. Enough for any prompt. */
const indexDigits = 7

const digits = (): string => String(randomInt(10 ** 10, 10 ** 11)) + String(randomInt(10 ** 8, 10 ** 9))

/** What follows the name of a mark: a bracket, or the index of a text. One for all requests, because a pattern is compiled slowly. */
const afterName = /(?:([()])@@|:(\d+)(\\*)"@@("?))/y

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Numbers that llama.cpp's Jinja prints as they are: it prints six digits of others, and refuses very large ones. */
const printsExactly = (value: number): boolean => Number.isSafeInteger(value)

/** Whether the text stands before and after this range. */
const isAround = (rendered: string, text: string, from: number, to: number): boolean =>
  rendered.slice(Math.max(0, from - text.length), from) === text && rendered.startsWith(text, to)

export class Places {
  readonly #spellings: Spellings
  /** Of tokens that are found in ordinary text too. */
  readonly #everywhere: Spellings
  readonly #name = `@@${digits()}`
  readonly #texts: Array<{ readonly kind: Kind; readonly text: string; readonly around: string }> = []

  constructor(spellings: Spellings, everywhere: Spellings) {
    this.#spellings = spellings
    this.#everywhere = everywhere
  }

  /** For the text of a message. */
  readonly content = (text: string): string => this.#place("content", text)
  /** For text that the model wrote: it is tokenized as it was, with the template's text around it. */
  readonly text = (text: string): string => (text === "" ? "" : this.#place("text", text))
  /** For a picture, of which the request has this index. */
  readonly picture = (index: number): string => this.#place("picture", String(index))
  /**
   * For JSON text. If the template prints it as a JSON string, the JSON replaces the whole string. So it does if the template
   * prints `around`, where it is given, before and after a string.
   */
  readonly json = (text: string, around = ""): string => this.#place("json", text, around)

  /** For texts that the template reads and prints: marks around what would become a special token. */
  readonly guarded = (text: string): string => {
    let guarded = ""
    let at = 0
    for (const [from, to] of this.#spellings.ranges(text)) {
      guarded += `${text.slice(at, from)}${this.#name}(@@${text.slice(from, to)}${this.#name})@@`
      at = to
    }
    return guarded + text.slice(at)
  }

  /** The same value with all texts in it guarded. */
  readonly guardedJson = (value: Json): unknown => {
    if (typeof value === "string") return this.guarded(value)
    if (typeof value === "number") return printsExactly(value) ? value : this.json(String(value))
    if (typeof value !== "object" || value === null) return value
    if (Array.isArray(value)) return value.map(this.guardedJson)
    const members = Object.entries(value as JsonObject)
    return Object.fromEntries(members.map(([key, member]) => [this.guarded(key), this.guardedJson(member)]))
  }

  /** What the template rendered, with all texts in their places. */
  parts(rendered: string): ReadonlyArray<PromptPart> {
    const parts: Array<PromptPart> = []
    const add = (text: string, byTemplate: boolean) => {
      const last = parts.at(-1)
      if (text === "") return
      if (last?.byTemplate === byTemplate && last.picture === undefined)
        parts.splice(-1, 1, { text: last.text + text, byTemplate })
      else parts.push({ text, byTemplate })
    }
    const addAround = (text: string) => {
      let at = 0
      for (const [from, to] of this.#spellings.ranges(text)) {
        add(text.slice(at, from), true)
        add(text.slice(from, to), false)
        at = to
      }
      add(text.slice(at), true)
    }
    // One character that is tokenized as the template's text keeps what is before and after it apart.
    const addContent = (text: string) => {
      let at = 0
      for (const [from] of this.#everywhere.ranges(text)) {
        const cut = Math.max(at, from - 1)
        add(text.slice(at, cut), false)
        add(text.slice(cut, from), true)
        at = from
      }
      add(text.slice(at), false)
    }
    const { length } = this.#name
    let at = 0
    let ordinary = false
    let from = rendered.indexOf(this.#name)
    for (; from >= 0; from = rendered.indexOf(this.#name, Math.max(at, from + length))) {
      afterName.lastIndex = from + length
      const match = afterName.exec(rendered)
      if (match === null) continue
      const [, bracket, index, backslashes = "", after = ""] = match
      const before = from > at && rendered.charAt(from - 1) === '"' ? '"' : ""
      const around = this.#texts[Number(index)]?.around ?? ""
      if (around !== "" && isAround(rendered, around, from, afterName.lastIndex)) {
        add(rendered.slice(at, from - around.length), !ordinary)
        addAround(this.#texts[Number(index)]?.text ?? "")
        at = afterName.lastIndex + around.length
        continue
      }
      add(rendered.slice(at, from - before.length), !ordinary)
      at = afterName.lastIndex
      if (bracket !== undefined) {
        add(before, !ordinary)
        ordinary = bracket === "("
        continue
      }
      const place = this.#texts[Number(index)]
      if (place === undefined) continue
      if (place.kind === "picture") {
        add(before, true)
        parts.push({ text: "", byTemplate: true, picture: Number(place.text) })
        add(after, true)
        continue
      }
      const asString = backslashes !== ""
      const alone = asString && place.kind === "json" && before !== "" && after !== ""
      const text = asString && !alone ? escaped(place.text) : place.text
      if (!alone) add(before, true)
      if (place.kind === "content") addContent(text)
      else addAround(text)
      if (!alone) add(after, true)
    }
    add(rendered.slice(at), !ordinary)
    return parts
  }

  #place(kind: Kind, text: string, around = ""): string {
    this.#texts.push({ kind, text, around })
    return `${this.#name}:${String(this.#texts.length - 1).padStart(indexDigits, "0")}"@@`
  }
}

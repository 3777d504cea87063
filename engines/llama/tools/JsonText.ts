// JSON as text: spaces as Python's json.dumps and Jinja's tojson print them, literals untouched.

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|\s+|[,:]/g
const spaced: Readonly<Record<string, string>> = { ",": ", ", ":": ": " }

/** The same JSON with `, ` and `: ` and no other white space. Strings and numbers keep their spelling. */
export const respaced = (json: string): string =>
  json.replace(tokens, (token) => (token.startsWith('"') ? token : (spaced[token] ?? "")))

/** Finds the end of a JSON object or array whose text arrives in pieces. */
export class JsonEnd {
  #depth = 0
  #inString = false
  #escaped = false

  /** How many characters of the text belong to the value, and whether it ends there. */
  scan(text: string, from = 0): { readonly to: number; readonly ended: boolean } {
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false
        else if (code === 92) this.#escaped = true
        else if (code === 34) this.#inString = false
      } else if (code === 34) this.#inString = true
      else if (code === 123 || code === 91) this.#depth++
      else if ((code === 125 || code === 93) && --this.#depth <= 0) return { to: at + 1, ended: true }
    }
    return { to: text.length, ended: false }
  }

  /** Nesting after what was scanned. */
  get depth(): number {
    return this.#depth
  }

  get inString(): boolean {
    return this.#inString
  }
}

const isObject = (json: string): boolean => {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** The members of an object in their order, each value as its JSON text, respaced. Empty if it is no object. */
export const membersOf = (json: string): ReadonlyArray<readonly [key: string, json: string]> => {
  if (!isObject(json)) return []
  const text = respaced(json).slice(1, -1)
  const members: Array<readonly [string, string]> = []
  const end = new JsonEnd()
  let from = 0
  const add = (to: number) => {
    const member = text.slice(from, to)
    const key = /^"[^"\\]*(?:\\.[^"\\]*)*"/.exec(member)?.[0]
    if (key !== undefined) members.push([JSON.parse(key) as string, member.slice(key.length + 2)])
  }
  for (let at = 0; at < text.length; at++) {
    end.scan(text.charAt(at))
    if (text.charAt(at) !== "," || end.inString || end.depth > 0) continue
    add(at)
    from = at + 2
  }
  add(text.length)
  return members
}

// JSON as text: spaces as Python's json.dumps and Jinja's tojson print them, literals untouched.
import { JsonEnd } from "../readers/JsonEnd.ts"

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|\s+|[,:]/g
const spaced: Readonly<Record<string, string>> = { ",": ", ", ":": ": " }

/** The same JSON with `, ` and `: ` and no other white space. Strings and numbers keep their spelling. */
export const respaced = (json: string): string =>
  json.replace(tokens, (token) => (token.startsWith('"') ? token : (spaced[token] ?? "")))

const isObject = (json: string): boolean => {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** The text between commas outside of brackets and strings. The JSON is respaced. */
const parted = (text: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  const end = new JsonEnd()
  let from = 0
  for (let at = 0; at < text.length; at++) {
    end.scan(text.charAt(at))
    if (text.charAt(at) !== "," || end.inString || end.depth > 0) continue
    parts.push(text.slice(from, at))
    from = at + 2
  }
  return text === "" ? parts : [...parts, text.slice(from)]
}

/** The members of an object in their order, each value as its JSON text, respaced. Empty if it is no object. */
export const membersOf = (json: string): ReadonlyArray<readonly [key: string, json: string]> => {
  if (!isObject(json)) return []
  return parted(respaced(json).slice(1, -1)).flatMap((member): ReadonlyArray<readonly [string, string]> => {
    const key = /^"[^"\\]*(?:\\.[^"\\]*)*"/.exec(member)?.[0]
    return key === undefined ? [] : [[JSON.parse(key) as string, member.slice(key.length + 2)]]
  })
}

/** The items of an array, each as its JSON text. The JSON is valid and respaced. */
export const itemsOf = (json: string): ReadonlyArray<string> => parted(json.slice(1, -1))

// Arguments whose texts stand between markers instead of quotes, as in `{city:<|"|>Rome<|"|>,days:2}`: keys without quotes and
// sorted, no spaces, numbers with their spelling.
import { sortedKeys } from "../../grammar/PlainKeys.ts"
import { itemsOf, membersOf, respaced } from "./JsonText.ts"

/** Values nested deeper are written as JSON, so that a template does not call itself without end. A guess. */
export const mostNested = 32

export const sortedMembers = (json: string): ReadonlyArray<readonly [key: string, json: string]> => {
  const members = new Map(membersOf(json))
  return sortedKeys([...members.keys()]).map((key) => [key, members.get(key) ?? "null"])
}

/** JSON text in the notation with markers. */
export const markedText = (json: string, marker: string, depth = 0): string => {
  if (json.startsWith('"')) return marker + (JSON.parse(json) as string) + marker
  if (depth >= mostNested) return json
  if (json.startsWith("["))
    return `[${itemsOf(respaced(json))
      .map((item) => markedText(item, marker, depth + 1))
      .join(",")}]`
  if (!json.startsWith("{")) return json
  const members = sortedMembers(json).map(([key, value]) => `${key}:${markedText(value, marker, depth + 1)}`)
  return `{${members.join(",")}}`
}

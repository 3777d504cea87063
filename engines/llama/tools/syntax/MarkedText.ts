// Arguments whose texts stand between markers instead of quotes, as in `{city:<|"|>Rome<|"|>,days:2}`: keys without quotes, no
// spaces, numbers with their spelling.
import { itemsOf, membersOf, respaced } from "./JsonText.ts"

/** Values nested deeper are written as JSON, so that a template does not call itself without end. A guess. */
export const mostNested = 32

/** JSON text in the notation with markers. */
export const markedText = (json: string, marker: string, depth = 0): string => {
  if (json.startsWith('"')) return marker + (JSON.parse(json) as string) + marker
  if (depth >= mostNested) return json
  if (json.startsWith("["))
    return `[${itemsOf(respaced(json))
      .map((item) => markedText(item, marker, depth + 1))
      .join(",")}]`
  if (!json.startsWith("{")) return json
  const members = membersOf(json).map(([key, value]) => `${key}:${markedText(value, marker, depth + 1)}`)
  return `{${members.join(",")}}`
}

// Chinese characters spelled by their Cangjie keys, as the multilingual Chatterbox expects: 好 → [cj_v][cj_n]
// [cj_d][cj_.]. Pure; the table is the published `Cangjie5_TC.json`, a list of "character<TAB>keys".
import * as Schema from "effect/Schema"

export const CangjieTable = Schema.Array(Schema.String)

/** Several characters may share their keys; all but the first get a number at the end. */
export const cangjie = (table: ReadonlyArray<string>): ((text: string) => string) => {
  const keysOf = new Map<string, string>()
  const sharing = new Map<string, number>()
  for (const row of table) {
    const [character, keys] = row.split("\t")
    if (character === undefined || keys === undefined || keys === "" || keysOf.has(character)) continue
    const before = sharing.get(keys) ?? 0
    sharing.set(keys, before + 1)
    keysOf.set(character, before === 0 ? keys : `${keys}${before}`)
  }
  const spelled = (character: string): string => {
    const keys = keysOf.get(character)
    return keys === undefined ? character : `${[...keys].map((key) => `[cj_${key}]`).join("")}[cj_.]`
  }
  return (text) => Array.from(text, spelled).join("")
}

// Checks the drafts of transcription models: smaller models of the same catalog that write the captions of live
// sessions. Pure.
import type { ModelEntry } from "./ModelEntry.ts"
import type { AliasMistake } from "./ModelNames.ts"
import { suggestion } from "./NearestName.ts"

/**
 * The entry's id, its draft, that draft's draft and so on. Ends with an id that has no draft or that occurs the second
 * time.
 */
const chainOf = (drafts: ReadonlyMap<string, string>, id: string): ReadonlyArray<string> => {
  const chain = [id]
  for (let next = drafts.get(id); next !== undefined; next = drafts.get(next)) {
    const isKnown = chain.includes(next)
    chain.push(next)
    if (isKnown) break
  }
  return chain
}

const problemOf = (
  entries: ReadonlyArray<ModelEntry>,
  drafts: ReadonlyMap<string, string>,
  { id }: ModelEntry,
  draft: string,
): string | undefined => {
  const named = entries.find((entry) => entry.id === draft)
  if (named === undefined) {
    const other = entries.find(({ aliases }) => aliases?.includes(draft))
    if (other !== undefined) return `${draft} is an alias; name the id, ${other.id}`
    const known = entries.filter(({ kind }) => kind === "transcription").map((entry) => entry.id)
    return `"${draft}" is not a model of this catalog${suggestion(draft, known)}`
  }
  if (draft === id) return "is the model itself; name a smaller one, or leave it out"
  if (named.kind !== "transcription") return `${draft} is a ${named.kind} model; a draft transcribes`
  const chain = chainOf(drafts, id)
  // One mistake per circle: at its first entry in the catalog.
  const isFirst = entries.find((entry) => chain.includes(entry.id))?.id === id
  return chain.at(-1) === id && isFirst ? `is circular: ${chain.join(" -> ")}` : undefined
}

/** All mistakes in the drafts of a catalog. */
export const draftMistakes = (entries: ReadonlyArray<ModelEntry>): ReadonlyArray<AliasMistake> => {
  const drafts = new Map(
    entries.flatMap(({ id, transcription }) =>
      transcription?.draft === undefined ? [] : [[id, transcription.draft] as const],
    ),
  )
  return entries.flatMap((entry, index) => {
    const draft = drafts.get(entry.id)
    const problem = draft === undefined ? undefined : problemOf(entries, drafts, entry, draft)
    return problem === undefined ? [] : [{ path: ["models", index, "transcription", "draft"], problem }]
  })
}

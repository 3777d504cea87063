// Reads the model catalog, a JSON file that may have comments. A catalog with mistakes is refused with the line of each.
// ModelFiles finds and checks the weights of its entries.
import { Effect, Result, Schema } from "effect"
import { draftMistakes } from "#domain/models/ModelDrafts.ts"
import { Catalog, type ModelEntry } from "#domain/models/ModelEntry.ts"
import { aliasMistakes } from "#domain/models/ModelNames.ts"
import type { JsonPlaces } from "#store/files/JsonPlaces.ts"
import { firstOf, type Owner, readOperatorFile } from "#store/files/OperatorFile.ts"
import { decodeStrictly, type Mistake } from "#store/files/SchemaMistakes.ts"
import { entryMistakes, folderMistakes } from "./CatalogEntry.ts"

export class BadCatalog extends Schema.TaggedError<BadCatalog>()("BadCatalog", {
  path: Schema.String,
  problem: Schema.String,
  /** For a refused catalog: one line per mistake. */
  lines: Schema.optionalKey(Schema.Array(Schema.String)),
}) {
  override get message(): string {
    return this.lines === undefined ? `catalog ${this.path}: ${this.problem}` : firstOf(this.lines)
  }

  /** Exit status of the command: a file with mistakes counts as wrong usage. */
  get exitStatus(): number {
    return this.lines === undefined ? 1 : 2
  }
}

/** The entry's id if it can be shown, else its position in the list. */
const modelOf: Owner = (value, path) => {
  const [models, index] = path
  if (models !== "models" || typeof index !== "number") return undefined
  const entry = entriesOf(value)[index]
  const id = typeof entry === "object" && entry !== null && "id" in entry ? entry.id : undefined
  const isShown = typeof id === "string" && /^[\x21-\x7e]{1,128}$/.test(id)
  return { name: isShown ? id : `models[${index}]`, depth: 2 }
}

const entriesOf = (value: unknown): ReadonlyArray<unknown> => {
  const models = typeof value === "object" && value !== null && "models" in value ? value.models : undefined
  return Array.isArray(models) ? models : []
}

const idsTwice = (json: JsonPlaces, entries: ReadonlyArray<unknown>): ReadonlyArray<Mistake> => {
  const first = new Map<unknown, number>()
  return entries.flatMap((entry, index) => {
    const id = typeof entry === "object" && entry !== null && "id" in entry ? entry.id : undefined
    const earlier = first.get(id)
    if (typeof id !== "string" || earlier === undefined) {
      first.set(id, index)
      return []
    }
    const { line } = json.placeOfValue(["models", earlier, "id"])
    const problem = `${JSON.stringify(id)} is also the id of the model on line ${line}`
    return [{ path: ["models", index, "id"], problem }]
  })
}

const inEntry = (index: number, mistakes: ReadonlyArray<Mistake>): ReadonlyArray<Mistake> =>
  mistakes.map((mistake) => ({ ...mistake, path: ["models", index, ...mistake.path] }))

/** Mistakes in drafts; `beside` are models of another file, which a draft may name too. */
const draftsOf = (models: ReadonlyArray<ModelEntry>, beside: ReadonlyArray<ModelEntry>) =>
  draftMistakes([...models, ...beside]).filter(({ path: [, index] }) => Number(index) < models.length)

const check =
  (path: string, { beside, regions }: CatalogTerms) =>
  (json: JsonPlaces) =>
    Effect.promise(async (): Promise<Result.Result<Catalog, ReadonlyArray<Mistake>>> => {
      const entries = entriesOf(json.value)
      const folders = await folderMistakes(path, entries)
      const decoded = decodeStrictly(Catalog, json.value)
      const isEmpty = Result.isSuccess(decoded) && entries.length === 0 && beside === undefined
      const mistakes = [
        ...(Result.isFailure(decoded) ? decoded.failure : []),
        ...(isEmpty ? [{ path: ["models"], problem: "the catalog has no model" }] : []),
        ...idsTwice(json, entries),
        ...(Result.isSuccess(decoded) ? aliasMistakes(decoded.success.models) : []),
        ...(Result.isSuccess(decoded) ? draftsOf(decoded.success.models, beside ?? []) : []),
        ...entries.flatMap((entry, index) =>
          inEntry(index, [...entryMistakes(entry, regions), ...(folders[index] ?? [])]),
        ),
      ]
      return mistakes.length === 0 ? decoded : Result.fail(mistakes)
    })

export interface CatalogTerms {
  /** Region codes that entries may name; without it they are not checked. */
  readonly regions?: ReadonlyArray<string> | undefined
  /** Models of another file that are deployed with those of this one, which may then be empty. */
  readonly beside?: ReadonlyArray<ModelEntry>
}

/** The catalog, or all its mistakes. */
export const readCatalog = (path: string, terms: CatalogTerms = {}): Effect.Effect<Catalog, BadCatalog> =>
  Effect.mapError(
    readOperatorFile(path, "catalog file", modelOf, check(path, terms)),
    (lines) => new BadCatalog({ path, problem: "is refused", lines }),
  )

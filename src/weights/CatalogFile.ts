// Reads the model catalog, a JSON file that may have comments. A catalog with mistakes is refused with the line of each.
// ModelFiles finds and checks the weights of its entries.
import { Effect, Result, Schema } from "effect"
import { ConversationEntry, conversationMistakes } from "#domain/conversation/ConversationEntry.ts"
import { draftMistakes } from "#domain/models/ModelDrafts.ts"
import { Catalog as ModelCatalog, type ModelEntry } from "#domain/models/ModelEntry.ts"
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

/** The entries of a catalog file. */
interface Catalog {
  readonly models: ReadonlyArray<ModelEntry>
  readonly conversations: ReadonlyArray<ConversationEntry>
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

const isConversation = (entry: unknown): boolean =>
  typeof entry === "object" && entry !== null && "kind" in entry && entry.kind === "conversation"

/** Positions in the file of the entries that are models, or conversations. */
const positions = (entries: ReadonlyArray<unknown>, conversations: boolean): ReadonlyArray<number> =>
  entries.flatMap((entry, index) => (isConversation(entry) === conversations ? [index] : []))

/** The mistake at the entry's place in the file; `at`: its place by its position among those that were checked. */
const placed =
  (at: ReadonlyArray<number>) =>
  ({ path: [models, index, ...rest], ...mistake }: Mistake): Mistake => ({
    ...mistake,
    path:
      models === "models" && typeof index === "number"
        ? [models, at[index] ?? index, ...rest]
        : [models, index, ...rest].filter((key) => key !== undefined),
  })

/** Models and conversations have schemas of their own. */
const decode = (value: unknown): Result.Result<Catalog, ReadonlyArray<Mistake>> => {
  const entries = entriesOf(value)
  const [models, conversations] = [positions(entries, false), positions(entries, true)]
  // What is no catalog is reported by its schema.
  const others =
    conversations.length === 0
      ? value
      : { ...(value as object), models: models.map((index) => entries[index]) }
  const decoded = decodeStrictly(ModelCatalog, others)
  const conversing = conversations.map((index) => decodeStrictly(ConversationEntry, entries[index]))
  const mistakes = [
    ...(Result.isFailure(decoded) ? decoded.failure.map(placed(models)) : []),
    ...conversing.flatMap((one, at) =>
      Result.isFailure(one) ? inEntry(conversations[at]!, one.failure) : [],
    ),
  ]
  if (mistakes.length > 0 || Result.isFailure(decoded)) return Result.fail(mistakes)
  return Result.succeed({
    models: decoded.success.models,
    conversations: conversing.flatMap((one) => (Result.isSuccess(one) ? [one.success] : [])),
  })
}

/** What is wrong with entries that name each other; `beside` are models of another file, which they may name too. */
const betweenEntries = (
  entries: ReadonlyArray<unknown>,
  { conversations, models }: Catalog,
  beside: ReadonlyArray<ModelEntry>,
): ReadonlyArray<Mistake> => {
  const [atModels, atConversations] = [positions(entries, false), positions(entries, true)]
  const all = [...models, ...beside]
  const inOrder: Array<ModelEntry | ConversationEntry> = []
  for (const [at, index] of atModels.entries()) inOrder[index] = models[at]!
  for (const [at, index] of atConversations.entries()) inOrder[index] = conversations[at]!
  return [
    ...aliasMistakes(inOrder),
    ...draftMistakes(all)
      .filter(({ path: [, index] }) => Number(index) < models.length)
      .map(placed(atModels)),
    ...conversations.flatMap((entry, at) => inEntry(atConversations[at]!, conversationMistakes(entry, all))),
  ]
}

const check =
  (path: string, { beside, regions }: CatalogTerms) =>
  (json: JsonPlaces) =>
    Effect.promise(async (): Promise<Result.Result<Catalog, ReadonlyArray<Mistake>>> => {
      const entries = entriesOf(json.value)
      const folders = await folderMistakes(path, entries)
      const decoded = decode(json.value)
      const isEmpty = Result.isSuccess(decoded) && entries.length === 0 && beside === undefined
      const mistakes = [
        ...(Result.isFailure(decoded) ? decoded.failure : []),
        ...(isEmpty ? [{ path: ["models"], problem: "the catalog has no model" }] : []),
        ...idsTwice(json, entries),
        ...(Result.isSuccess(decoded) ? betweenEntries(entries, decoded.success, beside ?? []) : []),
        ...entries.flatMap((entry, index) =>
          inEntry(index, [...entryMistakes(entry, regions), ...(folders[index] ?? [])]),
        ),
      ]
      return mistakes.length === 0 ? decoded : Result.fail(mistakes)
    })

interface CatalogTerms {
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

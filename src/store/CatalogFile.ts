// Reads the model catalog, a JSON file, and refuses one that is wrong. Where an entry's weights are is ModelFiles' subject.
// Called by serve and by the models commands.
import { readFile, stat } from "node:fs/promises"
import { Effect, Schema } from "effect"
import { Catalog } from "#domain/Model.ts"
import { aliasProblem } from "#domain/ModelNames.ts"
import { placementProblem } from "#domain/Placement.ts"
import { adapterNames } from "#engines/adapters.ts"

export class BadCatalog extends Schema.TaggedError<BadCatalog>()("BadCatalog", {
  path: Schema.String,
  problem: Schema.String,
}) {
  override get message(): string {
    return `catalog ${this.path}: ${this.problem}`
  }
}

/** A catalog is written by hand; a megabyte is thousands of models. */
const maxCatalogBytes = 1_000_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Catalog))

export const readCatalog = (path: string): Effect.Effect<Catalog, BadCatalog> =>
  Effect.gen(function* () {
    const bad = (problem: string) => new BadCatalog({ path, problem })
    const { size } = yield* Effect.tryPromise({ try: () => stat(path), catch: () => bad("cannot be read") })
    if (size > maxCatalogBytes) return yield* bad(`is larger than ${maxCatalogBytes} bytes`)
    const text = yield* Effect.tryPromise({
      try: () => readFile(path, "utf8"),
      catch: () => bad("cannot be read"),
    })
    const catalog = yield* Effect.mapError(decode(text), (error) => bad(error.message))
    const ids = new Set<string>()
    for (const entry of catalog.models) {
      const { adapter, id } = entry
      if (ids.has(id)) return yield* bad(`${id} is there twice`)
      ids.add(id)
      if (!adapterNames.includes(adapter)) {
        return yield* bad(`${id}: unknown adapter ${adapter}; known are ${adapterNames.join(", ")}`)
      }
      const misplaced = placementProblem(entry)
      if (misplaced !== undefined) return yield* bad(`${id}: ${misplaced}`)
    }
    const alias = aliasProblem(catalog.models)
    if (alias !== undefined) return yield* bad(alias)
    return catalog
  })

// Reads JSON files that an operator writes by hand (the catalog and the regions file) and formats their mistakes, one
// line each, beginning with path, line and column.
import { readFile, stat } from "node:fs/promises"
import { Effect, Result } from "effect"
import { type JsonPath, type JsonPlaces, type Place, parseJsonFile } from "./JsonPlaces.ts"
import type { Mistake } from "./SchemaMistakes.ts"

/** The lines that say why a file is refused. */
type Refusal = ReadonlyArray<string>

/** Far above real files: a region takes one line and a model a few, so a megabyte is thousands. */
const maxBytes = 1_000_000

/** Mistakes shown at most. A guess: more than a screen does not help. */
const maxMistakes = 20

const readText = (path: string, what: string): Effect.Effect<string, Refusal> =>
  Effect.gen(function* () {
    const unreadable = (cause: unknown): Refusal => {
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
      return [
        `${path}: ${code === "ENOENT" ? `there is no such ${what}` : `the ${what} cannot be read (${code})`}`,
      ]
    }
    const info = yield* Effect.tryPromise({ try: () => stat(path), catch: unreadable })
    if (info.isDirectory()) return yield* Effect.fail([`${path}: is a folder, not a ${what}`])
    if (info.size > maxBytes) return yield* Effect.fail([`${path}: is larger than ${maxBytes} bytes`])
    return yield* Effect.tryPromise({ try: () => readFile(path, "utf8"), catch: unreadable })
  })

const keyText = (path: JsonPath): string =>
  path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part.slice(0, 100)}`))
    .join("")
    .replace(/^\./, "")

/**
 * Returns the owner of a path in words (e.g. the model that a mistake belongs to), and where the owner's own keys begin
 * in the path.
 */
export type Owner = (
  value: unknown,
  path: JsonPath,
) => { readonly name: string; readonly depth: number } | undefined

const lineOf = (file: string, json: JsonPlaces, { path, problem }: Mistake, place: Place, owner: Owner) => {
  const whose = owner(json.value, path)
  const key = keyText(path.slice(whose?.depth ?? 0))
  const subject = [whose?.name ?? "", key].filter((part) => part !== "").map((part) => `${part}: `)
  return `${file}:${place.line}:${place.column}: ${subject.join("")}${problem}`
}

/** One line per mistake, in file order. */
const linesOf = (
  file: string,
  json: JsonPlaces,
  mistakes: ReadonlyArray<Mistake>,
  owner: Owner,
): ReadonlyArray<string> => {
  const placed = mistakes.map((mistake) => ({
    mistake,
    place:
      mistake.place ??
      (mistake.atKey === true ? json.placeOfKey(mistake.path) : json.placeOfValue(mistake.path)),
  }))
  placed.sort((a, b) => a.place.line - b.place.line || a.place.column - b.place.column)
  const lines = placed.map(({ mistake, place }) => lineOf(file, json, mistake, place, owner))
  const hidden = lines.length - maxMistakes
  return hidden > 0 ? [...lines.slice(0, maxMistakes), `${file}: and ${hidden} more mistakes`] : lines
}

/**
 * Reads the file; `check` decodes it or lists its mistakes.
 * @param what the kind of file in words
 * @param owner names the entry that a mistake belongs to
 */
export const readOperatorFile = <A>(
  path: string,
  what: string,
  owner: Owner,
  check: (json: JsonPlaces) => Effect.Effect<Result.Result<A, ReadonlyArray<Mistake>>>,
): Effect.Effect<A, Refusal> =>
  Effect.gen(function* () {
    const json = parseJsonFile(yield* readText(path, what))
    if ("problem" in json) {
      return yield* Effect.fail([`${path}:${json.place.line}:${json.place.column}: ${json.problem}`])
    }
    const repeated = json.repeatedKeys.map(
      (twice): Mistake => ({ ...twice, problem: "this key occurs twice" }),
    )
    const checked = yield* check(json)
    if (Result.isSuccess(checked) && repeated.length === 0) return checked.success
    const mistakes = [...repeated, ...(Result.isFailure(checked) ? checked.failure : [])]
    return yield* Effect.fail(linesOf(path, json, mistakes, owner))
  })

/** A refusal in one line, for logs and replies: its first line and the number of the others. */
export const firstOf = ([first = "", ...others]: Refusal): string =>
  others.length === 0 ? first : `${first} (and ${others.length} more)`

// One schema with everything it refers to: checked keywords, paths for error messages, and the targets of `$ref`.

import type { Json, JsonObject } from "../../Json.ts"
import { checkContradictions } from "./Contradictions.ts"
import { checkKeywords, isList, isObject, keyword, named, subschemas } from "./Keywords.ts"
import { at, SchemaProblem, type Work } from "./Problem.ts"

/** The gateway allows 64 levels; this protects the recursive parts of the translation. */
const maxDepth = 128

export class SchemaDocument {
  readonly strict: boolean
  readonly work: Work
  readonly #root: Json
  readonly #paths = new Map<JsonObject, string>()
  readonly #numbers = new Map<JsonObject, number>()
  readonly #targets = new Map<string, Json>()
  readonly #anchors: ReadonlyMap<string, readonly [target: JsonObject, path: string]>

  constructor(root: Json, strict: boolean, work: Work) {
    this.#root = root
    this.strict = strict
    this.work = work
    this.#anchors = anchorsOf(root, work)
    this.#inspect(root, "")
  }

  path(schema: Json): string {
    return (isObject(schema) && this.#paths.get(schema)) || ""
  }

  /** A number for each schema, in the order in which they were found. */
  number(schema: JsonObject): number {
    return this.#numbers.get(schema)!
  }

  /** The schema that the `$ref` of a schema names. */
  target(schema: JsonObject): Json | undefined {
    const reference = keyword(schema, "$ref")
    return typeof reference === "string" ? this.#targets.get(reference) : undefined
  }

  /** Checks a schema, those inside it, and those that they refer to. */
  #inspect(root: Json, rootPath: string): void {
    const queue: Array<readonly [Json, string]> = [[root, rootPath]]
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const [schema, path] = next
      if (typeof schema === "boolean") continue
      if (!isObject(schema)) throw new SchemaProblem(path, "a schema is an object or a boolean")
      if (this.#paths.has(schema)) continue
      this.work.spend(1, path)
      this.#paths.set(schema, path)
      this.#numbers.set(schema, this.#numbers.size)
      if (schema !== this.#root && keyword(schema, "$id") !== undefined && this.strict) {
        throw new SchemaProblem(at(path, "$id"), "an $id inside a schema is not supported")
      }
      checkKeywords(schema, path, this.strict)
      checkContradictions(schema, path)
      queue.push(...[...subschemas(schema, path)].reverse())
      const reference = keyword(schema, "$ref")
      if (typeof reference !== "string" || this.#targets.has(reference)) continue
      const [target, targetPath] = this.#resolve(reference, path)
      this.#targets.set(reference, target)
      queue.push([target, targetPath])
    }
  }

  #resolve(reference: string, path: string): readonly [Json, string] {
    const where = at(path, "$ref")
    const unknown = new SchemaProblem(where, `${named(reference)} is not a schema of this document`)
    const rootId = isObject(this.#root) ? keyword(this.#root, "$id") : undefined
    const local =
      typeof rootId === "string" && rootId !== "" && reference.startsWith(rootId)
        ? reference.slice(rootId.length)
        : reference
    if (local === "" && reference !== "") return [this.#root, ""]
    if (!local.startsWith("#")) throw unknown
    const anchor = this.#anchors.get(local.slice(1))
    if (anchor !== undefined) return anchor
    let pointer: string
    try {
      pointer = decodeURIComponent(local.slice(1))
    } catch {
      throw unknown
    }
    if (pointer !== "" && !pointer.startsWith("/")) throw unknown
    let target: Json = this.#root
    const steps = pointer === "" ? [] : pointer.slice(1).split("/")
    const names = steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    for (const name of names) {
      if (isList(target)) {
        if (!/^(0|[1-9]\d*)$/.test(name) || Number(name) >= target.length) throw unknown
        target = target[Number(name)]!
      } else {
        if (!isObject(target)) throw unknown
        const member: Json | undefined = keyword(target, name)
        if (member === undefined) throw unknown
        target = member
      }
    }
    if (typeof target !== "boolean" && !isObject(target)) throw unknown
    return [target, at("", ...names)]
  }
}

/** Every `$anchor` and `$dynamicAnchor` of a document, and a check of its depth. */
const anchorsOf = (
  root: Json,
  work: Work,
): ReadonlyMap<string, readonly [target: JsonObject, path: string]> => {
  const found = new Map<string, readonly [JsonObject, string]>()
  const queue: Array<readonly [Json, string, number]> = [[root, "", 0]]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const [value, path, depth] = next
    if (typeof value !== "object" || value === null) continue
    work.spend(1, path)
    if (depth > maxDepth) {
      throw new SchemaProblem(path.slice(0, 200), `the schema has more than ${maxDepth} levels`)
    }
    if (isObject(value)) {
      for (const name of ["$anchor", "$dynamicAnchor"]) {
        const anchor = keyword(value, name)
        if (typeof anchor === "string" && !found.has(anchor)) found.set(anchor, [value, path])
      }
    }
    const entries: ReadonlyArray<readonly [string | number, Json]> = isList(value)
      ? value.map((item, i) => [i, item] as const)
      : Object.entries(value)
    for (const [name, item] of entries) {
      if (typeof item === "object" && item !== null) queue.push([item, at(path, name), depth + 1])
    }
  }
  return found
}

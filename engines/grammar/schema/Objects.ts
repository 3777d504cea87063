// Objects: members in the order of the schema, then further members where the schema allows them. Between markers they are
// sorted by their keys, as templates print them.

import type { Automaton, Expression } from "../Expression.ts"
import type { Json, JsonObject } from "../Json.ts"
import { plainKey, sortedKeys } from "../PlainKeys.ts"
import { freeKeyValues } from "./AnyJson.ts"
import { accepts, anyText, isEmpty, not } from "./automata/Automata.ts"
import { allTexts, anyOfTexts } from "./automata/Texts.ts"
import type { CompilationContext } from "./CompilationContext.ts"
import { isList, isObject, keyword, named } from "./document/Keywords.ts"
import { at, SchemaProblem } from "./document/Problem.ts"
import { choice, colon, printedKey, quoted, sequence, text } from "./JsonText.ts"
import { least, most } from "./Leaves.ts"
import { membersOf } from "./Members.ts"

/** Each pattern of keys doubles the kinds of keys that are told apart. */
const maxKeyPatterns = 6
/** Patterns that match at most this many keys are treated as lists of keys. */
const maxListedKeys = 32
/** Most states of an automaton of keys. There is one state for about each character of the named keys. */
const maxKeyStates = 50_000

interface KeyPattern {
  readonly source: string
  readonly automaton: Automaton
}

class ObjectRules {
  readonly compiler: CompilationContext
  readonly members: ReadonlyArray<JsonObject>
  readonly patterns: ReadonlyArray<KeyPattern>
  readonly nameSchemas: ReadonlyArray<Json>
  /** Values of keys; undefined if `propertyNames` excludes none. */
  readonly keys: Automaton | undefined

  constructor(compiler: CompilationContext, members: ReadonlyArray<JsonObject>) {
    this.compiler = compiler
    this.members = members
    const found = new Map<string, KeyPattern>()
    for (const schema of members) {
      const patterns = keyword(schema, "patternProperties")
      if (!isObject(patterns)) continue
      const path = at(compiler.document.path(schema), "patternProperties")
      for (const source of Object.keys(patterns)) {
        found.set(source, { source, automaton: compiler.leaves.pattern(source, at(path, source)) })
      }
      if (found.size > maxKeyPatterns) {
        throw new SchemaProblem(
          path,
          `there are more than ${maxKeyPatterns} patterns for the keys of one object`,
        )
      }
    }
    this.patterns = [...found.values()]
    this.nameSchemas = members.flatMap((schema) => keyword(schema, "propertyNames") ?? [])
    this.keys = this.nameSchemas.length === 0 ? undefined : compiler.strings(this.nameSchemas)
  }

  /** The schemas of the value of a key, or undefined if the key is not allowed. */
  valueOf(key: string | undefined, matches: (pattern: string) => boolean): ReadonlyArray<Json> | undefined {
    const values: Array<Json> = []
    for (const schema of this.members) {
      const found: Array<Json> = []
      const properties = keyword(schema, "properties")
      const own = key !== undefined && isObject(properties) ? keyword(properties, key) : undefined
      if (own !== undefined) found.push(own)
      const patterns = keyword(schema, "patternProperties")
      if (isObject(patterns)) {
        for (const [source, value] of Object.entries(patterns)) if (matches(source)) found.push(value)
      }
      if (found.length === 0) found.push(keyword(schema, "additionalProperties") ?? true)
      values.push(...found)
    }
    return values.includes(false) ? undefined : values
  }

  valueOfName(key: string): ReadonlyArray<Json> | undefined {
    if (!key.isWellFormed() || (this.keys !== undefined && !accepts(this.keys, key))) return undefined
    return this.valueOf(key, (source) =>
      this.patterns.some((pattern) => pattern.source === source && accepts(pattern.automaton, key)),
    )
  }

  /** Names in the order of the schema, with true for those that are required. */
  names(): ReadonlyMap<string, boolean> {
    const names = new Map<string, boolean>()
    for (const schema of this.members) {
      const properties = keyword(schema, "properties")
      for (const name of isObject(properties) ? Object.keys(properties) : []) names.set(name, false)
    }
    for (const schema of this.members) {
      const required = keyword(schema, "required")
      for (const name of isList(required) ? required : []) if (typeof name === "string") names.set(name, true)
    }
    return names
  }

  /** Keys of patterns and `propertyNames` that match only a few keys. */
  listed(): ReadonlyArray<string> {
    const named = this.nameSchemas.length === 0 ? undefined : this.compiler.values(this.nameSchemas)
    const keys = this.keys === undefined || named !== undefined ? [] : [this.keys]
    const automata = [...keys, ...this.patterns.map((pattern) => pattern.automaton)]
    const texts = automata.flatMap((automaton) => allTexts(automaton, maxListedKeys) ?? [])
    return [...new Set([...(named ?? []).filter((name) => typeof name === "string"), ...texts])]
  }

  /** Further members: one kind for each set of patterns that a key can match. */
  further(names: ReadonlyArray<string>, open: boolean): Expression | undefined {
    if (!open && this.patterns.length === 0) return undefined
    const kinds: Array<Expression> = []
    const path = this.compiler.document.path(this.members[0]!)
    const { compiler } = this
    const add = (keys: Automaton, left: ReadonlyArray<KeyPattern>, matched: ReadonlySet<string>) => {
      if (isEmpty(keys)) return
      const [first, ...rest] = left
      if (first !== undefined) {
        const where = at(path, "patternProperties")
        add(compiler.leaves.combined(keys, first.automaton, where), rest, new Set([...matched, first.source]))
        return add(compiler.leaves.combined(keys, not(first.automaton), where), rest, matched)
      }
      if (matched.size === 0 && !open) return
      const value = this.valueOf(undefined, (source) => matched.has(source))
      if (value === undefined) return
      const { notation } = compiler
      const readable = compiler.leaves.combined(keys, freeKeyValues(notation), path, maxKeyStates)
      if (typeof notation === "object" && isEmpty(readable)) return
      const key: Expression = {
        kind: "automaton",
        automaton:
          typeof notation === "object"
            ? readable
            : quoted(isEmpty(readable) ? keys : readable, isEmpty(readable)),
      }
      kinds.push(sequence(key, text(colon(compiler.notation)), compiler.rule(value)))
    }
    const others = names.length === 0 ? anyText : not(anyOfTexts(names))
    const keys = this.keys === undefined ? others : compiler.leaves.combined(others, this.keys, path)
    add(keys, this.patterns, new Set())
    return kinds.length === 0 ? undefined : choice(kinds)
  }
}

/** Undefined: no object fits. */
export const objectOf = (
  compiler: CompilationContext,
  members: ReadonlyArray<JsonObject>,
): Expression | undefined => {
  const rules = new ObjectRules(compiler, members)
  const path = compiler.document.path(members[0] ?? true)
  const low = least(members, "minProperties")
  const high = most(members, "maxProperties")
  const names = rules.names()
  const declared = [...names.keys()].filter((name) =>
    members.some((schema) => {
      const properties = keyword(schema, "properties")
      return isObject(properties) && keyword(properties, name) !== undefined
    }),
  )
  const listed = rules.listed().filter((name) => !names.has(name))
  const all = new Map([...names, ...listed.map((name) => [name, false] as const)])
  const list = []
  const { notation } = compiler
  const order = typeof notation === "object" ? sortedKeys([...all.keys()]) : [...all.keys()]
  for (const name of order) {
    const required = all.get(name) === true
    const value = rules.valueOfName(name)
    if (value === undefined) {
      if (!required) continue
      compiler.note(path, `the key ${named(name)} is required but not allowed`)
      return undefined
    }
    if (typeof notation === "object" && !plainKey.test(name)) {
      if (!compiler.document.strict) continue
      const problem = `the call syntax of the model cannot write the key ${named(name)}`
      throw new SchemaProblem(at(path, "properties", name), problem)
    }
    const of = sequence(text(printedKey(name, notation)), compiler.rule(value))
    list.push({ of, required })
  }
  const explicit = members.some((schema) => {
    const additional = keyword(schema, "additionalProperties")
    return additional === true || isObject(additional)
  })
  const closed = declared.length > 0 || rules.patterns.length > 0 || listed.length > 0
  const open = explicit || !closed || low > list.length
  const further = rules.further([...all.keys()], open)
  const unequal = low <= list.length + 1
  if (further !== undefined && !unequal && compiler.document.strict) {
    throw new SchemaProblem(
      at(path, "minProperties"),
      "keys that the schema does not name cannot be held different from each other",
    )
  }
  return membersOf(compiler, {
    list,
    further,
    counts: !unequal,
    least: low,
    most: high,
    opening: "{",
    closing: "}",
  })
}

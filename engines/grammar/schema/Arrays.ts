// Arrays: items with their own schemas first, then items of one schema.

import type { Expression } from "../Expression.ts"
import type { Json, JsonObject } from "../Json.ts"
import type { CompilationContext } from "./CompilationContext.ts"
import { isList, keyword } from "./document/Keywords.ts"
import { comma, optional, rule, sequence, text } from "./JsonText.ts"
import { least, most } from "./Leaves.ts"
import { membersOf } from "./Members.ts"

/** `prefixItems`, or `items` as a list, as earlier versions had it. */
const prefixOf = (schema: JsonObject): ReadonlyArray<Json> => {
  const prefix = keyword(schema, "prefixItems") ?? keyword(schema, "items")
  return isList(prefix) ? prefix : []
}

/** The schemas of an item, or undefined if there can be none. */
const itemAt = (members: ReadonlyArray<JsonObject>, place: number): ReadonlyArray<Json> | undefined => {
  const schemas = members.map((schema): Json => {
    const prefix = prefixOf(schema)
    if (place < prefix.length) return prefix[place]!
    const items = keyword(schema, "items")
    return items === undefined || isList(items) ? true : items
  })
  return schemas.includes(false) ? undefined : schemas
}

/** Undefined: no array fits. */
export const arrayOf = (
  compiler: CompilationContext,
  members: ReadonlyArray<JsonObject>,
): Expression | undefined => {
  const low = least(members, "minItems")
  const high = most(members, "maxItems")
  if (high !== undefined && low > high) return undefined
  const prefixes = Math.max(0, ...members.map((schema) => prefixOf(schema).length))
  const list: Array<Expression> = []
  let ended = false
  for (let place = 0; place < prefixes && !ended; place++) {
    const item = itemAt(members, place)
    if (item === undefined || (high !== undefined && place >= high)) ended = true
    else list.push(compiler.rule(item))
  }
  const explicit = members.some((schema) => {
    const items = keyword(schema, "items")
    return items !== undefined && !isList(items)
  })
  const item = ended || (prefixes > 0 && !explicit && low <= prefixes) ? undefined : itemAt(members, prefixes)
  const further = item === undefined ? undefined : compiler.rule(item)
  return itemsOf(compiler, list, further, low, high)
}

/** An item is possible only if all before it are there: each place has a rule for itself and what follows. */
const itemsOf = (
  compiler: CompilationContext,
  list: ReadonlyArray<Expression>,
  further: Expression | undefined,
  low: number,
  high: number | undefined,
): Expression | undefined => {
  if (list.length === 0) {
    return membersOf(compiler, {
      list: [],
      further,
      counts: true,
      least: low,
      most: high,
      opening: "[",
      closing: "]",
    })
  }
  const between = text(comma(compiler.notation))
  if (low > list.length && further === undefined) return undefined
  let tail: Expression =
    further === undefined
      ? text("")
      : {
          kind: "repeat",
          of: sequence(between, further),
          least: Math.max(0, low - list.length),
          most: high === undefined ? undefined : high - list.length,
        }
  for (let place = list.length - 1; place >= 0; place--) {
    const item = sequence(...(place > 0 ? [between] : []), list[place]!, tail)
    const name = compiler.freshName()
    compiler.define(name, place < low ? item : optional(item))
    tail = rule(name)
  }
  return sequence(text("["), tail, text("]"))
}

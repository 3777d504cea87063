// Members or items between brackets, separated by commas: some named and in order, some required, between two counts.

import type { Expression } from "../Expression.ts"
import type { CompilationContext } from "./CompilationContext.ts"
import { choice, comma, optional, rule, sequence, text } from "./JsonText.ts"

interface MemberList {
  readonly list: ReadonlyArray<{ readonly of: Expression; readonly required: boolean }>
  /** Any number of these follow, if given. */
  readonly further: Expression | undefined
  /** False: all of `further` together count as one for `least`, because their keys may be equal. */
  readonly counts: boolean
  readonly least: number
  readonly most: number | undefined
  readonly opening: string
  readonly closing: string
}

/** Undefined: the counts exclude every list. */
export const membersOf = (compiler: CompilationContext, members: MemberList): Expression | undefined => {
  const { list, further, most, opening, closing } = members
  const required = list.filter((member) => member.required).length
  const longest = further === undefined ? list.length : Number.POSITIVE_INFINITY
  if (required > (most ?? longest) || members.least > Math.min(most ?? longest, longest)) return undefined
  const between = text(comma(compiler.notation))
  const least = Math.max(members.least, required)
  const bounded = most !== undefined && most < longest
  const inner =
    required > 0 && least === required && !bounded
      ? afterRequired(list, further, between)
      : counted(compiler, members, least, bounded ? most : undefined, between)
  return sequence(text(opening), inner, text(closing))
}

/** Members before the first required one are followed by a comma, members behind it are preceded by one. */
const afterRequired = (
  list: MemberList["list"],
  further: Expression | undefined,
  between: Expression,
): Expression => {
  const first = list.findIndex((member) => member.required)
  const parts = list.map((member, i) => {
    if (i === first) return member.of
    if (i < first) return optional(sequence(member.of, between))
    const part = sequence(between, member.of)
    return member.required ? part : optional(part)
  })
  if (further !== undefined) {
    parts.push({ kind: "repeat", of: sequence(between, further), least: 0, most: undefined })
  }
  return sequence(...parts)
}

/** One rule for each place in the list and each count of members before it. */
const counted = (
  compiler: CompilationContext,
  { list, further, counts }: MemberList,
  least: number,
  most: number | undefined,
  between: Expression,
): Expression => {
  const cap = Math.max(1, most ?? least)
  const known = new Map<number, Expression>()
  const queue: Array<readonly [place: number, count: number, name: string]> = []
  const tail = (place: number, before: number): Expression => {
    const count = Math.min(before, cap)
    const key = place * (cap + 1) + count
    let expression = known.get(key)
    if (expression === undefined) {
      if (place === list.length) expression = rest(further, counts, count, least, most, between)
      else {
        const name = compiler.freshName()
        expression = rule(name)
        queue.push([place, count, name])
      }
      known.set(key, expression)
    }
    return expression
  }
  const start = tail(0, 0)
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const [place, count, name] = next
    const { of, required } = list[place]!
    const ways: Array<Expression> = []
    if (most === undefined || count < most) {
      ways.push(sequence(...(count > 0 ? [between] : []), of, tail(place + 1, count + 1)))
    }
    if (!required) ways.push(tail(place + 1, count))
    compiler.define(name, choice(ways))
  }
  return start
}

/** Between `least` and `most` members in all, `count` of which are before. */
const rest = (
  further: Expression | undefined,
  counts: boolean,
  count: number,
  least: number,
  most: number | undefined,
  between: Expression,
): Expression => {
  const low = Math.max(0, least - count)
  const high = most === undefined ? undefined : most - count
  if (!counts && low > 1) return choice([])
  if (further === undefined || high === 0) return low === 0 ? text("") : choice([])
  const repeated = (least: number, most: number | undefined): Expression => ({
    kind: "repeat",
    of: sequence(between, further),
    least,
    most,
  })
  if (count > 0) return repeated(low, high)
  const some = sequence(further, repeated(Math.max(0, low - 1), high === undefined ? undefined : high - 1))
  return low === 0 ? optional(some) : some
}

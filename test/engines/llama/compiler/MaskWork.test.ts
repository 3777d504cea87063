// The work of masks on a vocabulary of 150,000 tokens, in units and not in time: no slice is large, hostile schemas reach the bound of
// a reply, and usual ones stay far below it, with every token masked.
import { describe, expect, it } from "vitest"
import type { JsonObject } from "#domain/wire/Json.ts"
import { compile } from "#engines/grammar/compile/Compile.ts"
import { sliceWork } from "#engines/grammar/match/Masks.ts"
import { BoundGrammar } from "#engines/grammar/match/ReplyConstraint.ts"
import type { TokenTrie } from "#engines/grammar/match/TokenTrie.ts"
import { mostWork } from "#engines/llama/model/Constraints.ts"
import { replyShape } from "#engines/llama/model/Shapes.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import { largeVocabulary } from "../../../../engines/grammar/test/LargeVocabulary.ts"
import { runs } from "../../../support/groups/Runs.ts"

const trie = largeVocabulary()

const boundTo = (schema: JsonObject, tokens: TokenTrie): BoundGrammar => {
  const format = { kind: "schema", strict: false, schema } as const
  const made = compile(replyShape({ family: "general", format }).shape, tokens.singleBytes)
  if ("problem" in made) throw new Error(made.problem)
  return new BoundGrammar(made.grammar, tokens)
}

class Exceeded extends Error {}

interface Seen {
  readonly tokens: number
  /** Of one call. */
  readonly largest: number
  readonly work: number
  readonly exceeded: boolean
}

/** Every token is masked; letters are preferred, so that texts are long. */
const reply = (schema: JsonObject, most: number, maxTokens: number): Seen => {
  const bound = boundTo(schema, trie)
  const { machine } = bound
  const constraint = bound.reply(most, () => new Exceeded())
  const random = seededRandom(3)
  const letters = /^[ a-z]{2,}$/
  const decoder = new TextDecoder()
  const logits = new Float32Array(trie.size)
  let [tokens, largest] = [0, 0]
  const measured = <A>(use: () => A): A => {
    const before = machine.work
    try {
      return use()
    } finally {
      largest = Math.max(largest, machine.work - before)
    }
  }
  try {
    while (tokens < maxTokens) {
      const left = maxTokens - tokens
      while (!measured(() => constraint.find(left)));
      constraint.mask(logits.fill(0), left)
      const allowed: Array<number> = []
      for (let token = 0; token < trie.size - 1; token++) if (logits[token] === 0) allowed.push(token)
      const pick = () => allowed[Math.floor(random() * allowed.length)]
      let chosen = pick()
      for (let tries = 0; tries < 20 && tokens % 16 !== 15; tries++) {
        if (chosen === undefined || letters.test(decoder.decode(trie.bytesOf(chosen)))) break
        chosen = pick()
      }
      if (chosen === undefined) break
      const next = chosen
      measured(() => constraint.accept(next))
      tokens++
      for (const token of measured(() => constraint.forced(maxTokens - tokens))) {
        constraint.accept(token)
        tokens++
      }
      if (constraint.finished()) break
    }
  } catch (cause) {
    if (!(cause instanceof Exceeded)) throw cause
    return { tokens, largest, work: machine.work, exceeded: true }
  }
  return { tokens, largest, work: machine.work, exceeded: false }
}

const many = <A>(count: number, make: (at: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, at) => make(at))
const object = (properties: JsonObject): JsonObject => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})
const text = { type: "string" }

const hostile: Readonly<Record<string, JsonObject>> = {
  "300 lengths of a text in a list": {
    type: "array",
    items: { anyOf: many(300, (at) => ({ ...text, minLength: at, maxLength: 500 + at })) },
  },
  "200 lengths of a text": {
    $defs: Object.fromEntries(many(200, (at) => [`d${at}`, { ...text, maxLength: 400 + at }])),
    anyOf: many(200, (at) => ({ $ref: `#/$defs/d${at}` })),
  },
  "100 lengths of a list": {
    anyOf: many(100, (at) => ({
      type: "array",
      items: { ...text, maxLength: 200 + at },
      minItems: 1 + at,
      maxItems: 500 + at,
    })),
  },
}

const usual: Readonly<Record<string, JsonObject>> = {
  "a person": object({ name: text, age: { type: "integer" }, tags: { type: "array", items: text } }),
  "texts with a limit": object(
    Object.fromEntries(many(10, (at) => [`key${at}`, { ...text, maxLength: 20 + 30 * at }])),
  ),
  "100 optional texts": {
    type: "object",
    properties: Object.fromEntries(many(100, (at) => [`key${at}`, text])),
  },
  "50 alternatives": {
    anyOf: many(50, (at) => object({ kind: { const: `k${at}` }, value: text, number: { type: "number" } })),
  },
  "a list with limits": {
    type: "array",
    items: object({ title: { ...text, minLength: 1, maxLength: 80 }, url: { ...text, format: "uri" } }),
    minItems: 3,
    maxItems: 40,
  },
  "formats and patterns": object({
    email: { ...text, format: "email" },
    time: { ...text, format: "date-time" },
    code: { ...text, pattern: "^[A-Z]{3}-[0-9]{4}$" },
    words: { ...text, pattern: "^(\\w+\\s?)*$" },
  }),
}

/** A slice ends with the position that reaches its bound: the most ways of reading a text, and the spelling of its end. */
const mostOver = 20_000

/** In `npm test` two of each. */
const tried = (schemas: Readonly<Record<string, JsonObject>>) =>
  Object.entries(schemas).slice(0, runs(2, 100))

describe.each(tried(hostile))("hostile: %s", (_, schema) => {
  it("is held in slices, and ended at the bound", () => {
    const bound = mostWork / runs(40, 10)
    const seen = reply(schema, bound, 4_096)
    expect(seen.exceeded).toBe(true)
    expect(seen.largest).toBeLessThanOrEqual(sliceWork + mostOver)
    expect(seen.work).toBeLessThanOrEqual(bound + sliceWork + mostOver)
  })
})

describe.each(tried(usual))("usual: %s", (name, schema) => {
  it("uses a third of the bound at most, with every token masked", () => {
    const seen = reply(schema, mostWork, runs(60, 600))
    console.info(
      `${name}: ${seen.tokens} tokens, ${seen.largest} at once, ${seen.work} units, 1/${(mostWork / seen.work).toFixed(0)}`,
    )
    expect(seen.exceeded).toBe(false)
    expect(seen.largest).toBeLessThanOrEqual(sliceWork + mostOver)
    expect(seen.work).toBeLessThanOrEqual(mostWork / 3)
  })
})

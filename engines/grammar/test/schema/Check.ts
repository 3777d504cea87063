// One schema against an independent validator: every sentence must be valid JSON under the schema.

import { isDeepStrictEqual } from "node:util"
import { Ajv2020 } from "ajv/dist/2020.js"
import formats from "ajv-formats"
import { MarkedReader } from "../../../llama/tools/readers/MarkedReader.ts"
import type { Json } from "../../Json.ts"
import { type Notation, printed } from "../../schema/JsonText.ts"
import { schemaRules } from "../../schema/SchemaRules.ts"
import { randomNumbers, Sentences } from "./Sentences.ts"

// Quotients of decimals are rounded, so multiples are compared within 1/1000.
const ajv = new Ajv2020({
  strict: false,
  multipleOfPrecision: 3,
  validateSchema: false,
})
formats.default(ajv)

export const validatorOf = (schema: Json): ((value: unknown) => boolean) => {
  const validate = ajv.compile(schema as object)
  ajv.removeSchema(schema as object)
  return (value) => validate(value) === true
}

type Outcome = "held" | "refused"

/** Integers of more digits than a double has are printed with other digits. */
const isExact = (text: string): boolean => !/\d{16}/.test(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""'))

/** Objects whose keys look like array indexes are printed in another order, and of two equal keys the last is kept. */
const keepsOrder = (text: string): boolean => !/"\d+":/.test(text)

/** The JSON of a sentence, whatever its notation. */
const jsonOf = (sentence: string, notation: Notation): string => {
  if (typeof notation === "string") return sentence
  const read = new MarkedReader(notation.marker).read(`{value:${sentence}}`)
  if (read?.ended !== true) throw new Error(`not read: ${sentence}`)
  return read.json.slice('{"value": '.length, -1)
}

/** Throws with the sentence if one is not valid, or not printed as it was parsed. */
export const check = (schema: Json, seed: number, sentences: number, strict = true): Outcome => {
  let validate: ((value: unknown) => boolean) | undefined
  for (const notation of ["compact", "spaced", { marker: "<|" }] as const) {
    // Rules that are not strict leave out a key that this notation cannot write.
    if (!strict && typeof notation === "object") {
      if ("problem" in schemaRules(schema, { strict: true, notation, prefix: "s" })) continue
    }
    const made = schemaRules(schema, { strict, notation, prefix: "s" })
    if ("problem" in made) {
      // Some keys, and texts with the marker, can be written in JSON only.
      if (typeof notation === "object" && /cannot write the key|no value/.test(made.problem.detail)) continue
      return "refused"
    }
    const writer = new Sentences(made.rules)
    validate ??= validatorOf(schema)
    const next = randomNumbers(seed)
    for (let i = 0; i < sentences; i++) {
      const sentence = writer.random(next, i % 2 === 0 ? 30 : 120)
      const value = JSON.parse(jsonOf(sentence, notation)) as Json
      if (!validate(value)) throw new Error(`not valid: ${sentence}`)
      const again = printed(value, notation)
      // Keys that the schema does not name are not sorted in a sentence.
      if (typeof notation === "object") {
        if (!isDeepStrictEqual(JSON.parse(jsonOf(again, notation)), value))
          throw new Error(`read as ${again}`)
        continue
      }
      if (again !== sentence && isExact(sentence) && keepsOrder(sentence) && !hasEqualKeys(sentence, again)) {
        throw new Error(`printed as ${again}: ${sentence}`)
      }
    }
  }
  return "held"
}

/** A member whose key stands twice in its object is printed once. */
const hasEqualKeys = (sentence: string, again: string): boolean => {
  const keys = (text: string) => text.match(/"(?:[^"\\]|\\.)*":/g)?.length ?? 0
  return keys(again) < keys(sentence)
}

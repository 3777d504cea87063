// Values of a JSON Schema of the OpenAPI document, and values that nearly fit: an odd value in one place, a field missing or too many.
import fc from "fast-check"

export interface JsonSchema {
  readonly type?: string
  readonly format?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: JsonSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
}

/** Texts that have broken programs: empty, control characters, lone surrogates, paths, long ones. */
export const oddText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "\u0000",
    "\ud800",
    "\u202e",
    "../../etc/passwd",
    "%00",
    "a\r\nb: c",
    "__proto__",
    "💥",
  ),
  fc.constantFrom("null", "-1", "1e309", "NaN", "true", "x".repeat(5_000)),
  fc.string({ unit: "binary", maxLength: 20 }),
)

const oddNumber: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(0, -0, -1, 0.5, 1e21, 2 ** 31, 2 ** 53, 1e308, 5e-324),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)

export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  oddText,
  oddNumber,
  fc.constantFrom(null, true, false, [], {}, [[]], { "": "" }, [null], { type: "?" }),
  fc.jsonValue({ maxDepth: 3 }),
)

/** Most elements of a generated list, and characters of a generated text: what the schema allows is often much more. */
const mostItems = 3
const mostCharacters = 30

const textOf = ({ maxLength = mostCharacters, minLength = 0 }: JsonSchema): fc.Arbitrary<string> => {
  const size = { minLength, maxLength: Math.max(minLength, Math.min(maxLength, mostCharacters)) }
  return fc.oneof(
    { arbitrary: fc.string(size), weight: 3 },
    { arbitrary: fc.string({ ...size, unit: "grapheme" }), weight: 1 },
  )
}

const numberOf = ({ maximum = 1e6, minimum = -1e6, type }: JsonSchema): fc.Arbitrary<number> =>
  type === "integer"
    ? fc.oneof(
        fc.integer({ min: minimum, max: maximum }),
        fc.integer({ min: minimum, max: Math.min(maximum, minimum + 8) }),
      )
    : fc.double({ min: minimum, max: maximum, noNaN: true })

/**
 * Values that a schema accepts.
 * @param known likely values of fields by name: a random text is never the id of a model
 */
export const valuesOf = (
  schema: JsonSchema,
  schemas: Readonly<Record<string, JsonSchema>>,
  known: Readonly<Record<string, fc.Arbitrary<unknown>>> = {},
): fc.Arbitrary<unknown> => {
  const of = (each: JsonSchema, depth: number): fc.Arbitrary<unknown> => {
    if (each.$ref !== undefined) return of(schemas[each.$ref.split("/").at(-1) ?? ""] ?? {}, depth + 1)
    if (each.enum !== undefined) return fc.constantFrom(...each.enum)
    if (each.anyOf !== undefined) return fc.oneof(...each.anyOf.map((one) => of(one, depth + 1)))
    switch (each.type) {
      case "null":
        return fc.constant(null)
      case "boolean":
        return fc.boolean()
      case "integer":
      case "number":
        return numberOf(each)
      case "string":
        return textOf(each)
      case "array": {
        const least = each.minItems ?? 0
        const most = Math.max(least, Math.min(each.maxItems ?? mostItems, depth > 8 ? 0 : mostItems))
        return fc.array(of(each.items ?? {}, depth + 1), { minLength: least, maxLength: most })
      }
      case "object":
        return objectOf(each, depth)
      default:
        return fc.jsonValue({ maxDepth: 2 })
    }
  }
  const objectOf = ({ properties = {}, required = [] }: JsonSchema, depth: number) => {
    const fields = Object.entries(properties).map(([name, value]) => {
      const any = of(value, depth + 1)
      const likely = known[name]
      const field =
        likely === undefined ? any : fc.oneof({ arbitrary: likely, weight: 9 }, { arbitrary: any, weight: 1 })
      return [name, field] as const
    })
    // Few of many optional fields: with half of them, some combination would nearly always be refused.
    const names = fields.map(([name]) => name)
    const optional = names.filter((name) => !required.includes(name))
    return fc
      .subarray(optional, { maxLength: Math.min(optional.length, 3) })
      .chain((chosen) =>
        fc.record(
          Object.fromEntries(fields.filter(([name]) => required.includes(name) || chosen.includes(name))),
        ),
      )
  }
  return of(schema, 0)
}

type Path = ReadonlyArray<string | number>

const pathsOf = (value: unknown, at: Path = []): ReadonlyArray<Path> =>
  typeof value === "object" && value !== null
    ? [
        at,
        ...Object.entries(value).flatMap(([name, inner]) =>
          pathsOf(inner, [...at, Array.isArray(value) ? Number(name) : name]),
        ),
      ]
    : [at]

/** `value` with `change` applied to what is at `path`; `undefined` removes it. */
const changed = (value: unknown, [first, ...rest]: Path, change: (old: unknown) => unknown): unknown => {
  if (first === undefined) return change(value)
  if (Array.isArray(value)) {
    const item = changed(value[Number(first)], rest, change)
    return item === undefined ? value.toSpliced(Number(first), 1) : value.with(Number(first), item)
  }
  const { [first]: old, ...others } = value as Record<string, unknown>
  const inner = changed(old, rest, change)
  return inner === undefined ? others : { ...others, [first]: inner }
}

/** One change somewhere in a value: another value, nothing, or one field or element more. */
const mutated = (value: unknown): fc.Arbitrary<unknown> => {
  const paths = pathsOf(value)
  const inside = paths.filter((path) => path.length > 0)
  const replaced = fc
    .tuple(fc.constantFrom(...paths), oddValue)
    .map(([path, odd]) => changed(value, path, () => odd))
  const added = fc
    .tuple(fc.constantFrom(...paths), oddText, oddValue)
    .map(([path, name, odd]) =>
      changed(value, path, (old) =>
        Array.isArray(old)
          ? [...old, odd]
          : typeof old === "object" && old !== null
            ? { ...old, [name]: odd }
            : old,
      ),
    )
  const removed =
    inside.length === 0
      ? []
      : [fc.constantFrom(...inside).map((path) => changed(value, path, () => undefined))]
  return fc.oneof(replaced, added, ...removed)
}

/** Values with one or two changes. */
export const nearly = (values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(
    { arbitrary: values.chain(mutated), weight: 3 },
    { arbitrary: values.chain(mutated).chain(mutated), weight: 1 },
  )

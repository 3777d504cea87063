// Kinds of fields that several request schemas use. `null` counts as absent, as OpenAI's clients send it for "not set".
import { Schema, SchemaAST } from "effect"

export const range = (minimum: number, maximum: number) =>
  Schema.isBetween({ minimum, maximum }, { message: `must be between ${minimum} and ${maximum}` })

export const int = Schema.Int.annotate({ message: "must be an integer" })
export const finite = Schema.Finite.annotate({ message: "must be a number" })
export const text = Schema.String.annotate({ message: "must be a text" })
/** A text of so many characters (UTF-16 units). */
export const textUpTo = (most: number) =>
  text.check(Schema.isMaxLength(most, { message: `must be at most ${most} characters` }))
export const flag = Schema.Boolean.annotate({ message: "must be true or false" })

/** A value of another type is refused in the words of the schema, if it has some. */
export const optional = <S extends Schema.Top>(schema: S) => {
  const orNull = Schema.NullOr(schema)
  const message = SchemaAST.resolve(schema.ast)?.message
  return Schema.optionalKey(typeof message === "string" ? orNull.annotate({ message }) : orNull)
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Any object. Decoding does not walk into it, so its size and depth cost nothing. */
export const anyObject = Schema.Unknown.check(
  Schema.makeFilter((value: unknown) => isObject(value) || "must be an object"),
)

/** A name of a function, a tool or a format. */
export const name = text.check(
  Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/, {
    message: "must be 1 to 64 letters, digits, underscores and hyphens",
  }),
)

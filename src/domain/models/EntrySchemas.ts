// Schemas of the fields of catalog entries, options of engines among them. Pure.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A field that may be left out. */
export const withDefault = <S extends Schema.Top>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

export const integerFrom = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const numberFrom = (minimum: number, maximum: number) =>
  Schema.Finite.check(Schema.isBetween({ minimum, maximum }))

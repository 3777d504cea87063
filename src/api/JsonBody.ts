// Reads a JSON request body under its cap and decodes it with a schema; says which field is wrong and why.
// Used by every endpoint that takes JSON. The content type is not looked at: a body that is JSON is understood.
import { ByteSize, Effect, Schema, SchemaIssue } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import { BodyTooLarge, InvalidRequest } from "#domain/Errors.ts"

/** The contract's cap for JSON bodies. */
export const maxJsonBytes = 8_000_000

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** `["messages", 0, "role"]` → `messages[0].role`. */
const pathOf = (path: ReadonlyArray<unknown>): string =>
  path.reduce<string>((text, step) => {
    const key = typeof step === "object" && step !== null && "key" in step ? step.key : step
    if (typeof key === "number") return `${text}[${key}]`
    return text === "" ? String(key) : `${text}.${String(key)}`
  }, "")

/** The first issue of a failed decoding, as a field and what is wrong with it. */
export const invalidRequestOf = (error: Schema.SchemaError): InvalidRequest => {
  const first = formatIssue(error.issue).issues[0]
  const problem = first?.message === "Missing key" ? "is required" : (first?.message ?? "is invalid")
  const field = pathOf(first?.path ?? [])
  return new InvalidRequest({ field: field === "" ? "body" : field, problem })
}

/** Decodes a JSON text that has already been read, e.g. a WebSocket frame. */
export const decodeJson = <A>(
  schema: Schema.Codec<A, unknown>,
  check?: (body: unknown) => InvalidRequest | undefined,
) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (text: string): Effect.Effect<A, InvalidRequest> =>
    Effect.suspend(() => {
      let body: unknown
      try {
        body = JSON.parse(text)
      } catch {
        return Effect.fail(new InvalidRequest({ field: "body", problem: "is not valid JSON" }))
      }
      const problem = check?.(body)
      if (problem !== undefined) return Effect.fail(problem)
      return Effect.mapError(decode(body), invalidRequestOf)
    })
}

const withCap = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxJsonBytes))

/** The request's body as a value of `schema`. `check` may refuse a body cheaply before it is decoded. */
export const readJson = <A>(
  schema: Schema.Codec<A, unknown>,
  check?: (body: unknown) => InvalidRequest | undefined,
): ((request: HttpServerRequest.HttpServerRequest) => Effect.Effect<A, InvalidRequest | BodyTooLarge>) => {
  const decode = decodeJson(schema, check)
  return (request) =>
    withCap(request.text).pipe(
      Effect.mapError((error) =>
        error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"
          ? new BodyTooLarge({ limitBytes: maxJsonBytes })
          : new InvalidRequest({ field: "body", problem: "could not be read" }),
      ),
      Effect.flatMap(decode),
    )
}

// Reads a JSON request body under its limit and decodes it with a schema; errors name the field and the reason.
// The content type is not read (protocol 1.2).
import { ByteSize, Effect, Schema, SchemaIssue } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import type { HttpServerError } from "effect/http/HttpServerError"
import { BodyTooLarge, InvalidRequest } from "#domain/wire/Errors.ts"
import { type Parsed, parseJson } from "./JsonText.ts"
import { parseLarge } from "./LargeJson.ts"

/** Most bytes of a JSON body (protocol 1.2). */
export const maxJsonBytes = 8_000_000

/**
 * Items of one list, and of all lists inside its items: decoding costs up to 4 µs an item (measured). No context that
 * is deployed could hold as many messages.
 */
const maxItems = 4_096

/** The first list that is too long to be decoded on the event loop. */
const longList = (body: unknown): InvalidRequest | undefined => {
  if (typeof body !== "object" || body === null) return undefined
  for (const [field, list] of Object.entries(body)) {
    if (!Array.isArray(list)) continue
    const inner = list.flatMap((item: unknown) =>
      typeof item === "object" && item !== null ? Object.values(item).filter(Array.isArray) : [],
    )
    const items = Math.max(
      list.length,
      inner.reduce((sum, { length }) => sum + length, 0),
    )
    if (items > maxItems) return new InvalidRequest({ field, problem: `must be at most ${maxItems} items` })
  }
  return undefined
}

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

/** The value of a schema in a parsed text. */
export const decodeParsed = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (parsed: Parsed): Effect.Effect<A, InvalidRequest> => {
    if ("problem" in parsed) {
      return Effect.fail(new InvalidRequest({ field: "body", problem: parsed.problem }))
    }
    const problem = longList(parsed.value)
    if (problem !== undefined) return Effect.fail(problem)
    return Effect.mapError(decode(parsed.value), invalidRequestOf)
  }
}

/** Decodes a JSON text that has already been read, e.g. a WebSocket frame. */
export const decodeJson = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = decodeParsed(schema)
  return (text: string): Effect.Effect<A, InvalidRequest> => Effect.suspend(() => decode(parseJson(text)))
}

const bodyError =
  (limitBytes: number) =>
  (error: HttpServerError): InvalidRequest | BodyTooLarge =>
    error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"
      ? new BodyTooLarge({ limitBytes })
      : new InvalidRequest({ field: "body", problem: "could not be read" })

/** The body as received, under the same limit; reading it twice costs nothing. */
export const bodyBytes = (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes = maxJsonBytes,
): Effect.Effect<Uint8Array, InvalidRequest | BodyTooLarge> =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limitBytes)),
    Effect.mapError(bodyError(limitBytes)),
    Effect.map((buffer) => new Uint8Array(buffer)),
  )

/** Largest body that the event loop parses itself: 1 ms if the text is not ASCII (measured). */
const largestInPlace = 256 * 1024

const text = new TextDecoder()
const encoder = new TextEncoder()

/** Parses a frame of a socket, which may hold pictures. */
export const parseFrame = (frame: string): Effect.Effect<Parsed> =>
  frame.length > largestInPlace
    ? Effect.suspend(() => parseLarge(encoder.encode(frame), true))
    : Effect.sync(() => parseJson(frame))

/** The body of a request with pictures, and its size. */
export interface ReadBody<A> {
  readonly body: A
  readonly sizeBytes: number
}

/** The body of a request that may have pictures in its messages, see PictureUrl of the schemas. */
export const readWithPictures = <A>(
  schema: Schema.Codec<A, unknown>,
): ((
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number,
) => Effect.Effect<ReadBody<A>, InvalidRequest | BodyTooLarge>) => {
  const decode = decodeParsed(schema)
  return (request, limitBytes) =>
    Effect.flatMap(bodyBytes(request, limitBytes), (bytes) => {
      const parsed =
        bytes.length > largestInPlace
          ? parseLarge(bytes, true)
          : Effect.sync(() => parseJson(text.decode(bytes)))
      return Effect.map(Effect.flatMap(parsed, decode), (body) => ({ body, sizeBytes: bytes.length }))
    })
}

/** The request's body as a value of `schema`. */
export const readJson = <A>(
  schema: Schema.Codec<A, unknown>,
): ((request: HttpServerRequest.HttpServerRequest) => Effect.Effect<A, InvalidRequest | BodyTooLarge>) => {
  const decode = decodeParsed(schema)
  return (request) =>
    bodyBytes(request).pipe(
      Effect.flatMap((bytes) =>
        bytes.length > largestInPlace ? parseLarge(bytes) : Effect.sync(() => parseJson(text.decode(bytes))),
      ),
      Effect.flatMap(decode),
    )
}

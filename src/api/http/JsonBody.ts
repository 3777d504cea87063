// Reads a JSON request body under its limit and decodes it with a schema; errors name the field and the reason.
// The content type is not read (protocol 1.2).
import { ByteSize, Effect, Schema, SchemaIssue } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import type { HttpServerError } from "effect/http/HttpServerError"
import { maxJsonBytes, type Parsed } from "#domain/json/JsonLimits.ts"
import { JsonReader, type KeepsBytes } from "#domain/json/JsonReader.ts"
import { parseJson, smallBytes } from "#domain/json/JsonText.ts"
import { BodyTooLarge, InvalidRequest } from "#domain/wire/Errors.ts"
import { isObject } from "#domain/wire/text/Fields.ts"
import { decodeInlinePictures, keepsPictures } from "#domain/wire/text/Pictures.ts"
import { inSlices } from "#http/InSlices.ts"
import { TextFrame } from "#http/SocketFrames.ts"

/**
 * Items of one list together with those of all lists inside its items: decoding costs up to 2 µs an item (measured). Prompts with
 * as many messages do not fit into the contexts that are deployed.
 */
const maxItems = 4_096

/** Objects inside of objects that are searched for lists. Bodies have no list deeper that is decoded item by item. */
const searchedLevels = 5

/** The field of a JSON Schema, which is not decoded here: it has its own bounds and words. */
const unread = "schema"

/** Items of the lists inside a list's items. */
const innerItems = (list: ReadonlyArray<unknown>): number => {
  let sum = 0
  for (const item of list) {
    if (!isObject(item) || item instanceof Uint8Array) continue
    for (const key of Object.keys(item)) {
      const inner = item[key]
      if (Array.isArray(inner)) sum += inner.length
    }
  }
  return sum
}

/** The path of the first list that is too long to be decoded on the event loop. */
const longList = (body: unknown, path = "", levels = searchedLevels): string | undefined => {
  // Bytes stand for a long text.
  if (!isObject(body) || body instanceof Uint8Array) return undefined
  for (const key of Object.keys(body)) {
    const value = body[key]
    const field = path === "" ? key : `${path}.${key}`
    if (Array.isArray(value)) {
      if (value.length > maxItems || value.length + innerItems(value) > maxItems) return field
    } else if (levels > 1 && key !== unread) {
      const found = longList(value, field, levels - 1)
      if (found !== undefined) return found
    }
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
const decodeParsed = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (parsed: Parsed): Effect.Effect<A, InvalidRequest> => {
    if ("problem" in parsed) {
      return Effect.fail(new InvalidRequest({ field: "body", problem: parsed.problem }))
    }
    const field = longList(parsed.value)
    if (field !== undefined)
      return Effect.fail(new InvalidRequest({ field, problem: `must be at most ${maxItems} items` }))
    return Effect.mapError(decode(parsed.value), invalidRequestOf)
  }
}

/** Decodes a value that `parseFrame` gave. */
export const decodeValue = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = decodeParsed(schema)
  return (value: unknown): Effect.Effect<A, InvalidRequest> => Effect.suspend(() => decode({ value }))
}

/** Decodes a JSON text that has already been read and is small, e.g. a frame of a WebSocket. */
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

/**
 * Reads and drops the body of a request that takes none, before anything is done: some clients send one, e.g. `{}`. Above the limit of
 * JSON bodies it is refused like any other.
 */
export const withoutBody =
  (request: HttpServerRequest.HttpServerRequest) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | InvalidRequest | BodyTooLarge, R> =>
    Effect.andThen(bodyBytes(request), work)

const text = new TextDecoder()

const tooLarge = new BodyTooLarge({ limitBytes: maxJsonBytes, besidesPictures: true })

/** Reads a large text in slices. What stays bytes does not count as its size. */
const readLarge = (bytes: Uint8Array, keeps?: KeepsBytes): Effect.Effect<Parsed, BodyTooLarge> =>
  Effect.suspend(() => {
    const reader = new JsonReader(bytes, keeps)
    return Effect.flatMap(
      inSlices((isOver) => reader.read(isOver)),
      // No prompt is as long.
      (parsed) =>
        bytes.length - reader.keptBytes > maxJsonBytes ? Effect.fail(tooLarge) : Effect.succeed(parsed),
    )
  })

const readWithInline = (bytes: Uint8Array): Effect.Effect<Parsed, BodyTooLarge> =>
  Effect.tap(readLarge(bytes, keepsPictures), (parsed) =>
    "problem" in parsed ? Effect.void : inSlices(decodeInlinePictures(parsed.value)),
  )

/** With `pictures`, bytes may stand for the `data:` URLs of its messages, see PictureUrl of the schemas. */
const parseBytes = (bytes: Uint8Array, pictures: boolean): Effect.Effect<Parsed, BodyTooLarge> =>
  bytes.length <= smallBytes
    ? Effect.sync(() => parseJson(text.decode(bytes)))
    : pictures
      ? readWithInline(bytes)
      : readLarge(bytes)

const valueOf = (parsed: Parsed): Effect.Effect<unknown, InvalidRequest> =>
  "problem" in parsed
    ? Effect.fail(new InvalidRequest({ field: "body", problem: parsed.problem }))
    : Effect.succeed(parsed.value)

/** The value of a text frame of a WebSocket, which may be as large as a body and may hold pictures. */
export const parseFrame = (
  frame: string | TextFrame,
): Effect.Effect<unknown, InvalidRequest | BodyTooLarge> =>
  Effect.flatMap(
    frame instanceof TextFrame ? readWithInline(frame) : Effect.sync(() => parseJson(frame)),
    valueOf,
  )

/** The value of a text frame. Long texts that `keeps` names stay bytes. */
export const parseEvent = (
  frame: string | TextFrame,
  keeps: KeepsBytes,
): Effect.Effect<unknown, InvalidRequest | BodyTooLarge> =>
  Effect.flatMap(
    frame instanceof TextFrame ? readLarge(frame, keeps) : Effect.sync(() => parseJson(frame)),
    valueOf,
  )

/** The body of a request that may have pictures, and its size. */
export interface ReadBody<A> {
  readonly body: A
  readonly sizeBytes: number
}

/** The body of a request that may have pictures in its messages. */
export const readWithPictures = <A>(
  schema: Schema.Codec<A, unknown>,
): ((
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number,
) => Effect.Effect<ReadBody<A>, InvalidRequest | BodyTooLarge>) => {
  const decode = decodeParsed(schema)
  return (request, limitBytes) =>
    Effect.flatMap(bodyBytes(request, limitBytes), (bytes) =>
      Effect.map(Effect.flatMap(parseBytes(bytes, true), decode), (body) => ({
        body,
        sizeBytes: bytes.length,
      })),
    )
}

/** The request's body as a value of `schema`. */
export const readJson = <A>(
  schema: Schema.Codec<A, unknown>,
): ((request: HttpServerRequest.HttpServerRequest) => Effect.Effect<A, InvalidRequest | BodyTooLarge>) => {
  const decode = decodeParsed(schema)
  return (request) =>
    Effect.flatMap(bodyBytes(request), (bytes) => Effect.flatMap(parseBytes(bytes, false), decode))
}

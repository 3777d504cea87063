// How endpoints declare what HttpApi has no word for: the product's errors, the events of a stream, the frames of a
// socket, further headers.
import { Context, Schema, SchemaGetter } from "effect"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import type { CloseCodes } from "#domain/wire/events/SocketCloses.ts"
import { type EdgeError, errorClasses } from "#domain/wire/Failures.ts"
import { problemOf } from "#http/ErrorBody.ts"

/** The object that OpenAI's clients read. */
const ErrorObject = Schema.Struct({
  message: Schema.String,
  type: Schema.Literals(["invalid_request_error", "server_error"]),
  param: Schema.NullOr(Schema.String),
  code: Schema.NullOr(Schema.String),
}).annotate({ description: "Only in replies to requests with the header `X-Stainless-Lang`" })

/** The body of nearly every error (protocol 3.1). */
export const Detail = Schema.Struct({ detail: Schema.String, error: Schema.optionalKey(ErrorObject) })

type Tag = EdgeError["_tag"]
type ErrorOf<T extends Tag> = Extract<EdgeError, { readonly _tag: T }>

const bodies = new Map<Tag, Schema.Codec<object, unknown>>()

/** The body of an error, named by its code in the OpenAPI document. One schema for each class. */
const bodyOf = (tag: Tag): Schema.Codec<object, unknown> => {
  const { body, when } = errorClasses[tag].failure
  const known = bodies.get(tag) ?? (body?.schema ?? Detail).annotate({ identifier: tag, description: when })
  bodies.set(tag, known)
  return known
}

/** The reply to an error of one class. A body does not hold an error's facts, so it is encoded and never decoded. */
const replyTo = <T extends Tag>(tag: T): Schema.Codec<ErrorOf<T>, unknown> => {
  const { status, when } = errorClasses[tag].failure
  return Schema.declare((value): value is ErrorOf<T> => value instanceof errorClasses[tag])
    .pipe(
      Schema.encodeTo(bodyOf(tag), {
        decode: SchemaGetter.forbidden(() => "a reply is not decoded as an error"),
        encode: SchemaGetter.transform((error) => {
          const { body, detail } = problemOf(error)
          return body ?? { detail }
        }),
      }),
    )
    .annotate({ httpApiStatus: status, description: when })
}

/** Declares that an endpoint may answer with these errors; status and body are those of their classes. */
export const errors = <const Tags extends ReadonlyArray<Tag>>(
  ...tags: Tags
): ReadonlyArray<Schema.Codec<ErrorOf<Tags[number]>, unknown>> =>
  [...new Set<Tags[number]>(tags)].map((tag) => replyTo(tag))

/** An event stream (protocol 1.7). Its endpoint declares the events with `StreamEvents`. */
export const eventStream = HttpApiSchema.StreamUint8Array({ contentType: "text/event-stream" })

/** Schema of the JSON in each event of an endpoint's event stream; `[DONE]` is no event. */
export const StreamEvents = Context.Reference<Schema.Codec<unknown, unknown> | undefined>(
  "edgewise/api/StreamEvents",
  { defaultValue: () => undefined },
)

/** What a WebSocket carries after its handshake. */
export interface Frames {
  /** JSON of the server's text frames. The server sends no binary frames. */
  readonly server: Schema.Codec<unknown, unknown>
  /** JSON of the client's text frames. Another frame is answered as the endpoint says. */
  readonly client: Schema.Codec<unknown, unknown>
  readonly closes: CloseCodes
}

export const SocketFrames = Context.Reference<Frames | undefined>("edgewise/api/SocketFrames", {
  defaultValue: () => undefined,
})

/** The answer to a WebSocket handshake. */
export const switchingProtocols = HttpApiSchema.Empty(101)

/** Headers of an endpoint's replies beside those of every reply (ReplyHeaders) and of its errors. In lower case. */
export const OwnHeaders = Context.Reference<ReadonlyArray<string>>("edgewise/api/OwnHeaders", {
  defaultValue: () => [],
})

// The declared replies of the three APIs for a check: method and path → status → schemas of bodies, content types and headers.
import { Context, Schema } from "effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { AuthApi } from "#api/declared/AuthApi.ts"
import { EdgeApi } from "#api/declared/EdgeApi.ts"
import { RouterApi } from "#api/declared/RouterApi.ts"
import { errorClasses } from "#domain/wire/Failures.ts"
import { Detail, type Frames, OwnHeaders, SocketFrames, StreamEvents } from "#http/Declared.ts"
import { everyReply, handshake, listenerReplies } from "./ReplyHeaders.ts"
import type { WireRole } from "./WireTap.ts"

type Decode = (value: unknown) => string | undefined

/** A decoder that refuses undeclared fields. Returns the error, or undefined. */
const strict = (schema: Schema.Codec<unknown, unknown>): Decode => {
  const decode = Schema.decodeUnknownResult(schema, { onExcessProperty: "error" })
  return (value) => {
    const result = decode(value)
    return result._tag === "Success" ? undefined : result.failure.message.replaceAll(/\s+/g, " ")
  }
}

export interface Replies {
  /** Decoders of JSON bodies; one of them must accept the body. */
  readonly json: Array<Decode>
  /** Content types of bodies that are not JSON. */
  readonly contentTypes: Set<string>
  readonly headers: Set<string>
}

export interface Endpoint {
  readonly name: string
  readonly method: string
  readonly path: RegExp
  readonly replies: ReadonlyMap<number, Replies>
  readonly events: Decode | undefined
  readonly frames: (Frames & { readonly decode: Decode }) | undefined
}

const Encoding = Schema.Struct({ _tag: Schema.String, contentType: Schema.String })
const isEncoding = Schema.is(Encoding)

type AnySchema = Schema.Codec<unknown, unknown>

/** The content type of a body that is not JSON. */
const textTypeOf = ({ ast }: AnySchema): string | undefined => {
  const encoding = ast.annotations?.["~httpApiEncoding"]
  return isEncoding(encoding) && encoding._tag !== "Json" ? encoding.contentType : undefined
}

const contentTypesOf = (schema: object): ReadonlyArray<string> | undefined =>
  "contentTypes" in schema && Array.isArray(schema.contentTypes) ? schema.contentTypes : undefined

const addSuccess = (replies: Replies, schema: AnySchema): void => {
  if (HttpApiSchema.isWithHeaders(schema)) {
    for (const name of headerNames(schema.headers as unknown as AnySchema)) replies.headers.add(name)
    return addSuccess(replies, schema.schema as unknown as AnySchema)
  }
  const types = contentTypesOf(schema) ?? (textTypeOf(schema) === undefined ? [] : [textTypeOf(schema)!])
  for (const type of types) replies.contentTypes.add(type)
  if (types.length === 0 && !HttpApiSchema.isNoContent(schema.ast)) replies.json.push(strict(schema))
}

/** The header names of a struct, also if HttpApi has wrapped it in codecs. */
const headerNames = (schema: AnySchema): ReadonlyArray<string> => {
  const encoded = Schema.toEncoded(schema).ast
  return "propertySignatures" in encoded
    ? (encoded.propertySignatures as ReadonlyArray<{ name: PropertyKey }>).map(({ name }) => String(name))
    : []
}

/** Headers of errors with this status. */
const errorHeaders = (status: number): ReadonlyArray<string> =>
  Object.values(errorClasses).flatMap(({ failure }) =>
    failure.status === status
      ? [...Object.keys(failure.headers ?? {}), ...(failure.retry === "after" ? ["retry-after"] : [])]
      : [],
  )

const fresh = (status: number, own: ReadonlyArray<string>): Replies => ({
  json: [],
  contentTypes: new Set(),
  headers: new Set([...everyReply, ...own, ...errorHeaders(status), ...(status === 101 ? handshake : [])]),
})

const pathOf = (path: string): RegExp =>
  new RegExp(
    `^${path
      .replaceAll(".", "\\.")
      .replaceAll(/:[^/]+/g, "[^/]+")
      .replaceAll("*", ".+")}$`,
  )

const endpointsOf = (api: typeof EdgeApi | typeof AuthApi | typeof RouterApi): ReadonlyArray<Endpoint> => {
  const found: Array<Endpoint> = []
  HttpApi.reflect(api as typeof EdgeApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, errors, mergedAnnotations, successes }) => {
      const own = Context.get(mergedAnnotations, OwnHeaders)
      const replies = new Map<number, Replies>()
      const at = (status: number): Replies => {
        const known = replies.get(status) ?? fresh(status, own)
        replies.set(status, known)
        return known
      }
      for (const [status, schemas] of successes) {
        for (const schema of schemas) addSuccess(at(status), schema as unknown as AnySchema)
      }
      // Streams are not in `successes`.
      for (const schema of endpoint.success) {
        if (contentTypesOf(schema) !== undefined) addSuccess(at(200), schema as unknown as AnySchema)
      }
      for (const [status, schemas] of errors) {
        for (const schema of schemas)
          at(status).json.push(strict(Schema.toEncoded(schema as unknown as AnySchema)))
      }
      const events = Context.get(mergedAnnotations, StreamEvents)
      const frames = Context.get(mergedAnnotations, SocketFrames)
      found.push({
        name: `${endpoint.method} ${endpoint.path}`,
        method: endpoint.method,
        path: pathOf(endpoint.path),
        replies,
        events: events === undefined ? undefined : strict(events),
        frames: frames === undefined ? undefined : { ...frames, decode: strict(frames.server) },
      })
    },
  })
  return found.toSorted((a, b) => Number(a.name.includes(":")) - Number(b.name.includes(":")))
}

const byRole: Readonly<Record<WireRole, ReadonlyArray<Endpoint>>> = {
  edge: endpointsOf(EdgeApi),
  auth: endpointsOf(AuthApi),
  router: endpointsOf(RouterApi),
}

/** HEAD is answered like GET. */
export const endpointOf = (role: WireRole, method: string, path: string): Endpoint | undefined =>
  byRole[role].find(
    (endpoint) => endpoint.method === (method === "HEAD" ? "GET" : method) && endpoint.path.test(path),
  )

/** Replies of listener and routing, by status. */
export const ofListener: ReadonlyMap<number, Replies> = new Map(
  listenerReplies.map(({ body, headers = [], status }) => {
    const replies = fresh(status, headers)
    if (body === "detail") replies.json.push(strict(Detail))
    return [status, replies]
  }),
)

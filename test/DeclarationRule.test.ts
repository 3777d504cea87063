// Every endpoint of the three APIs says what it sends: replies, errors, events and frames have schemas, and none of them
// is "anything".
import { Context, Schema, SchemaAST } from "effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { expect, it } from "vitest"
import { AuthApi } from "#api/declared/AuthApi.ts"
import { EdgeApi } from "#api/declared/EdgeApi.ts"
import { RouterApi } from "#api/declared/RouterApi.ts"
import { errorClasses } from "#domain/wire/Failures.ts"
import { SocketFrames, StreamEvents } from "#http/Declared.ts"

/** Where a schema takes anything: paths of its unknown parts. */
const untypedIn = (ast: SchemaAST.AST, at = "", seen = new Set<SchemaAST.AST>()): ReadonlyArray<string> => {
  if (seen.has(ast)) return []
  seen.add(ast)
  switch (ast._tag) {
    case "Unknown":
    case "Any":
    case "ObjectKeyword":
      return [`${at}: ${ast._tag}`]
    case "Objects":
      return [
        ...ast.propertySignatures.flatMap(({ name, type }) => untypedIn(type, `${at}.${String(name)}`, seen)),
        ...ast.indexSignatures.flatMap(({ type }) => untypedIn(type, `${at}[]`, seen)),
      ]
    case "Arrays":
      return [...ast.elements, ...ast.rest].flatMap((type) => untypedIn(type, `${at}[]`, seen))
    case "Union":
      return ast.types.flatMap((type) => untypedIn(type, at, seen))
    case "Suspend":
      return untypedIn(ast.thunk(), at, seen)
    default:
      return []
  }
}

interface Declared {
  readonly name: string
  /** Replies, events and frames: what the server sends. */
  readonly schemas: ReadonlyArray<Schema.Top>
  readonly errors: number
  readonly lacks: ReadonlyArray<string>
}

const endpointsOf = (api: typeof EdgeApi | typeof AuthApi | typeof RouterApi): ReadonlyArray<Declared> => {
  const found: Array<Declared> = []
  HttpApi.reflect(api as typeof EdgeApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, errors, mergedAnnotations, successes }) => {
      const replies = [...endpoint.success]
      const events = Context.get(mergedAnnotations, StreamEvents)
      const frames = Context.get(mergedAnnotations, SocketFrames)
      const isEventStream = replies.some(
        (schema) => "contentType" in schema && schema.contentType === "text/event-stream",
      )
      const bodies = replies.map((schema) => (HttpApiSchema.isWithHeaders(schema) ? schema.schema : schema))
      found.push({
        name: `${endpoint.method} ${endpoint.path}`,
        schemas: [
          ...bodies,
          ...[...errors.values()].flat().map((schema) => Schema.toEncoded(schema)),
          ...(events === undefined ? [] : [events]),
          ...(frames === undefined ? [] : [frames.server]),
        ] as ReadonlyArray<Schema.Top>,
        errors: errors.size,
        lacks: [
          // The OpenAPI document shows only the errors of such a status.
          ...[...errors.keys()]
            .filter((status) => successes.has(status))
            .map((status) => `a single declaration of ${status}: it is a reply and an error`),
          ...(endpoint.success.size === 0 ? ["a success schema"] : []),
          ...(isEventStream && events === undefined ? ["StreamEvents"] : []),
          ...(successes.has(101) && frames === undefined ? ["SocketFrames"] : []),
        ],
      })
    },
  })
  return found
}

const all = [EdgeApi, AuthApi, RouterApi].flatMap(endpointsOf)

/** Their handlers cannot be refused or fail: pages, and health, whose 503 is a reply. */
const withoutErrors = [
  "GET /",
  "GET /playground/*",
  "GET /docs",
  "GET /docs/scalar.js",
  "GET /openapi.json",
  "GET /health",
]

const problemsOf = (endpoints: ReadonlyArray<Declared>): ReadonlyArray<string> =>
  endpoints.flatMap(({ errors, lacks, name, schemas }) => [
    ...lacks.map((what) => `${name} lacks ${what}`),
    ...(errors === 0 && !withoutErrors.includes(name) ? [`${name} lacks error schemas`] : []),
    ...schemas.flatMap((schema) =>
      untypedIn(Schema.toType(schema).ast).map((where) => `${name} sends anything at${where}`),
    ),
  ])

it("holds for every endpoint", () => {
  expect(all.length).toBeGreaterThan(30)
  expect(problemsOf(all)).toEqual([])
})

it("notices a reply that is anything, a reply without a schema and a handler without errors", () => {
  const anything = Schema.Struct({ a: Schema.Record(Schema.String, Schema.Unknown) })
  const seeded = [
    { name: "GET /a", schemas: [anything], errors: 1, lacks: [] },
    { name: "GET /b", schemas: [], errors: 1, lacks: ["a success schema"] },
    { name: "GET /c", schemas: [], errors: 0, lacks: [] },
  ]
  expect(problemsOf(seeded)).toEqual([
    "GET /a sends anything at.a[]: Unknown",
    "GET /b lacks a success schema",
    "GET /c lacks error schemas",
  ])
})

it("has every error class on an endpoint", () => {
  const named = all.flatMap(({ schemas }) => schemas.map((schema) => SchemaAST.resolveIdentifier(schema.ast)))
  expect(Object.keys(errorClasses).filter((tag) => !named.includes(tag))).toEqual([])
})

// Requests that are generated from the OpenAPI document: valid, nearly valid and wrong ones. Each reply has to be documented for its
// operation, with a body of the documented schema, and none may be a 500.
import fc from "fast-check"
import { expect } from "vitest"
import { multipart } from "../../support/clients/MultipartBody.ts"
import { headerOf, RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import type { Operation } from "../../support/wire/ApiDocument.ts"
import { type JsonSchema, nearly, oddText, oddValue, valuesOf } from "../../support/wire/SchemaValues.ts"

/** Likely values by the name of a field: a random text is never the id of a model. */
export type Known = Readonly<Record<string, fc.Arbitrary<unknown>>>

/** Where the requests go, and what of it the document does not say. */
export interface Target {
  readonly operations: ReadonlyArray<Operation>
  readonly portOf: (operation: Operation) => number
  /** Credentials that are accepted. */
  readonly keys: ReadonlyArray<string>
  /** Credentials that are refused for some operations: without credit, revoked, of a narrower scope. */
  readonly otherKeys: ReadonlyArray<string>
  /** Of the fields of JSON bodies. */
  readonly fields: (operation: Operation) => Known
  /** Of parameters and of form fields. */
  readonly texts: (operation: Operation) => Known
  /** Files of uploads. */
  readonly files: ReadonlyArray<Uint8Array>
}

interface Body {
  readonly contentType: string | undefined
  readonly bytes: Uint8Array
}

interface Generated {
  readonly operation: Operation
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
}

/** Optional texts are left out by `undefined`. */
const maybe = <A>(arbitrary: fc.Arbitrary<A>): fc.Arbitrary<A | undefined> =>
  fc.option(arbitrary, { nil: undefined })

/** Whatever a header can hold without ending it. */
const headerText = oddText.map((text) =>
  text
    .replaceAll(/[^\t\u0020-\u007e\u0080-\u00ff]/g, "?")
    .trim()
    .slice(0, 2_000),
)

const someHeaders: Readonly<Record<string, fc.Arbitrary<string>>> = {
  "idempotency-key": fc.oneof(fc.constantFrom("same", "other"), headerText),
  "x-request-id": fc.oneof(fc.constant("request-1"), headerText),
  accept: fc.oneof(fc.constantFrom("text/event-stream", "application/xml", "*/*;q=0"), headerText),
  "accept-encoding": fc.constantFrom("gzip", "br;q=1, *;q=0", "identity;q=0"),
  "content-encoding": fc.constantFrom("gzip", "br", "identity", "?"),
  "if-none-match": fc.constantFrom("*", '"x"'),
  origin: fc.constantFrom("https://example.com", "null"),
  range: fc.constant("bytes=0-1"),
  traceparent: fc.oneof(fc.constant(`00-${"a".repeat(32)}-${"b".repeat(16)}-01`), headerText),
  "x-forwarded-for": fc.oneof(fc.constant("203.0.113.7, 10.0.0.1"), headerText),
  "x-http-method-override": fc.constant("DELETE"),
  cookie: headerText,
}

/** Few: each further header can be what is refused. */
const oddHeaders: fc.Arbitrary<Readonly<Record<string, string>>> = fc
  .subarray(Object.keys(someHeaders), { maxLength: 2 })
  .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, someHeaders[name]!]))))

const jsonBody = (operation: Operation, schema: JsonSchema, { fields }: Target): fc.Arbitrary<Body> => {
  const values = valuesOf(schema, operation.schemas, fields(operation))
  const right = (contentType: string | undefined) => (value: unknown) => ({
    contentType,
    bytes: Buffer.from(JSON.stringify(value) ?? "null"),
  })
  const bytes = fc.oneof(
    values
      .map((value) => Buffer.from(JSON.stringify(value)))
      .chain((whole) => fc.nat(whole.length).map((end) => whole.subarray(0, end))),
    fc
      .constantFrom("", "\ufeff{}", "{", "[]", "null", "1", '"', '{"a":1}{}', "[".repeat(2_000))
      .map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 60 }),
    values.map((value) => Buffer.from(JSON.stringify(value), "utf16le")),
  )
  const contentType = fc.constantFrom(
    "application/json",
    undefined,
    "text/plain",
    "application/json; charset=utf-16",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "?",
  )
  return fc.oneof(
    { arbitrary: values.map(right("application/json")), weight: 5 },
    { arbitrary: nearly(values).map(right("application/json")), weight: 5 },
    { arbitrary: oddValue.map(right("application/json")), weight: 1 },
    { arbitrary: fc.tuple(contentType, values).map(([type, value]) => right(type)(value)), weight: 1 },
    { arbitrary: fc.record({ contentType, bytes }), weight: 2 },
  )
}

const formBody = (operation: Operation, schema: JsonSchema, { files, texts }: Target): fc.Arbitrary<Body> => {
  const known = texts(operation)
  const fileNames = Object.entries(schema.properties ?? {}).filter(([, { format }]) => format === "binary")
  const fieldNames = Object.keys(schema.properties ?? {}).filter(
    (name) => !fileNames.some(([file]) => file === name),
  )
  const file = fc.record({
    name: fc.oneof(
      { arbitrary: fc.constant(fileNames[0]?.[0] ?? "file"), weight: 9 },
      { arbitrary: fc.constant("audio"), weight: 1 },
    ),
    filename: fc.constantFrom("a.wav", "audio", "", "..\\x.mp3", "a\u0000b"),
    type: fc.constantFrom("audio/wav", "application/octet-stream", "?"),
    body: fc.oneof(fc.constantFrom(...files), fc.uint8Array({ maxLength: 200 })),
  })
  const field = fc.oneof(
    ...fieldNames.map((name) =>
      fc
        .oneof(
          { arbitrary: (known[name] ?? oddText).map(String), weight: 4 },
          { arbitrary: oddText, weight: 1 },
        )
        .map((body) => ({ name, body })),
    ),
    fc.record({ name: oddText.map((text) => text.replaceAll(/["\r\n]/g, "")), body: oddText }),
  )
  const whole = fc
    .tuple(
      fc.oneof(
        { arbitrary: fc.tuple(file), weight: 8 },
        { arbitrary: fc.array(file, { maxLength: 2 }), weight: 1 },
      ),
      fc.array(field, { maxLength: 2 }),
      fc.boolean(),
    )
    .map(([parts, fields, first]) => multipart(first ? [...fields, ...parts] : [...parts, ...fields], "edge"))
  const right = whole.map(({ body, contentType }) => ({ contentType, bytes: body }))
  const cut = whole.chain(({ body, contentType }) =>
    fc.nat(body.length).map((end) => ({ contentType, bytes: body.subarray(0, end) })),
  )
  const other = fc
    .tuple(
      fc.constantFrom(
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=other",
        "application/json",
        undefined,
      ),
      whole,
    )
    .map(([contentType, { body }]) => ({ contentType, bytes: body }))
  return fc.oneof(
    { arbitrary: right, weight: 8 },
    { arbitrary: cut, weight: 1 },
    { arbitrary: other, weight: 1 },
  )
}

/** Percent-encoded, or a broken encoding. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed())

const query = (operation: Operation, { texts }: Target): fc.Arbitrary<string> => {
  const known = texts(operation)
  const declared = operation.parameters.filter((parameter) => parameter.in === "query")
  if (declared.length === 0)
    return fc.oneof(
      { arbitrary: fc.constant(""), weight: 9 },
      { arbitrary: fc.constant("?surplus=1"), weight: 1 },
    )
  const pairs = fc.array(
    fc.oneof(
      ...declared.map(({ name }) =>
        fc
          .oneof(
            { arbitrary: (known[name] ?? oddText).map((value) => encoded(String(value))), weight: 8 },
            { arbitrary: oddText.map(encoded), weight: 1 },
            { arbitrary: fc.constantFrom("%", "%zz", "%ff", "+"), weight: 1 },
          )
          .map((value) => `${encoded(name)}=${value}`),
      ),
      fc.constantFrom("surplus=1", "&", "=", "model"),
    ),
    { maxLength: 2 },
  )
  // Mostly with the model, without which most requests are refused.
  const model = declared.some(({ name }) => name === "model")
    ? fc.option(
        (known.model ?? oddText).map((id) => `model=${encoded(String(id))}`),
        { nil: undefined },
      )
    : fc.constant(undefined)
  return fc.tuple(model, pairs).map(([first, more]) => {
    const each = [...(first === undefined ? [] : [first]), ...more]
    return each.length === 0 ? "" : `?${each.join("&")}`
  })
}

const path = (operation: Operation, { texts }: Target): fc.Arbitrary<string> => {
  const known = texts(operation)
  const names = operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name)
  const value = (name: string) =>
    fc.oneof(
      { arbitrary: (known[name] ?? oddText).map((text) => encoded(String(text)) || "-"), weight: 3 },
      { arbitrary: oddText.map((text) => encoded(text) || "-"), weight: 1 },
      { arbitrary: fc.constantFrom("%2F", "a%2Fb", "a/b", "%", "%zz", "%00", "-".repeat(3_000)), weight: 1 },
    )
  return fc
    .tuple(...names.map(value))
    .map((values) =>
      names.reduce(
        (text, name, index) => text.replace(`{${name}}`, () => values[index] ?? ""),
        operation.path,
      ),
    )
}

/** Authorization headers: accepted ones mostly. */
const authorization = ({ keys, otherKeys }: Target): fc.Arbitrary<string | undefined> =>
  fc.oneof(
    { arbitrary: fc.constantFrom(...keys).map((key) => `Bearer ${key}`), weight: 12 },
    { arbitrary: fc.constantFrom(...otherKeys).map((key) => `Bearer ${key}`), weight: 1 },
    {
      arbitrary: maybe(
        fc.oneof(fc.constantFrom("Bearer", "Bearer ", "Basic dTpw", "bearer x.y.z"), headerText),
      ),
      weight: 1,
    },
  )

const requestTo = (operation: Operation, target: Target): fc.Arbitrary<Generated> => {
  const { body } = operation
  const bodies: fc.Arbitrary<Body | undefined> =
    body === undefined
      ? fc.oneof(
          { arbitrary: fc.constant(undefined), weight: 9 },
          {
            arbitrary: fc.constant({ contentType: "application/json", bytes: Buffer.from("{}") }),
            weight: 1,
          },
        )
      : fc.oneof(
          {
            arbitrary:
              body.contentType === "multipart/form-data"
                ? formBody(operation, body.schema, target)
                : jsonBody(operation, body.schema, target),
            weight: 19,
          },
          { arbitrary: fc.constant(undefined), weight: 1 },
        )
  return fc
    .record({
      at: path(operation, target),
      search: query(operation, target),
      auth: authorization(target),
      more: oddHeaders,
      sent: bodies,
    })
    .map(({ at, auth, more, search, sent }) => ({
      operation,
      target: at + search,
      headers: {
        ...more,
        ...(auth === undefined ? {} : { authorization: auth }),
        ...(sent?.contentType === undefined ? {} : { "content-type": sent.contentType }),
      },
      body: sent?.bytes,
    }))
}

/** What came back: for each operation the numbers of replies by status. */
export type Seen = Map<string, Map<number, number>>

const exchange = async ({ body, headers, operation, target }: Generated, port: number) => {
  const connection = await RawConnection.open(port)
  try {
    await connection.send(requestBytes(operation.method, target, headers, body))
    return await connection.response()
  } finally {
    connection.destroy()
  }
}

/** Shows a request that failed in the form in which it can be sent again. */
const shown = ({ body, headers, operation, target }: Generated): string =>
  JSON.stringify({ [operation.method]: target, headers, body: body && Buffer.from(body).toString("latin1") })

/** Sends `count` generated requests, one after the other, and counts the replies in `seen`. */
export const expectDocumented = async (
  target: Target,
  count: number,
  seen: Seen,
  seed?: number,
): Promise<void> => {
  const request = fc
    .constantFrom(...target.operations)
    .chain((operation) => requestTo(operation, target))
    .map((generated) => Object.assign(generated, { [fc.toStringMethod]: () => shown(generated) }))
  const property = fc.asyncProperty(request, async (generated) => {
    const response = await exchange(generated, target.portOf(generated.operation))
    const { name, problemOf } = generated.operation
    const { body, complete, status } = response
    const counts = seen.get(name) ?? new Map<number, number>()
    seen.set(name, counts.set(status, (counts.get(status) ?? 0) + 1))
    const contentType = headerOf(response, "content-type") ?? ""
    expect(problemOf({ status, contentType, body })).toBe(undefined)
    expect(status).not.toBe(500)
    expect(complete).toBe(true)
  })
  await fc.assert(property, { numRuns: count, ...(seed === undefined ? {} : { seed }) })
}

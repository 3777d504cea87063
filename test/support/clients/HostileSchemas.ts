// Schemas, tools and histories that cannot be used, and every form of a request that takes a schema.
import { fn, userSays } from "./TextRefusals.ts"

/** JSON text of a schema: some are nested too deep for `JSON.stringify`. */
interface HostileSchema {
  readonly name: string
  readonly json: string
  /** What the detail of the refusal says, if the machine is fast enough to find it. */
  readonly problem: RegExp
  /** Where the problem is, from the schema's root; the error may name a part of it. `body`: refused before it is parsed. */
  readonly at?: "body"
  /** As the definition of a tool it does not fit into a context of 2,048 tokens. */
  readonly isLong?: boolean
  /** Takes the engine a second or more to refuse, in each form. */
  readonly isSlow?: boolean
}

const many = <A>(count: number, make: (at: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, at) => make(at))
const keyed = (count: number, make: (at: number) => unknown, key = "k"): object =>
  Object.fromEntries(many(count, (at) => [`${key}${at}`, make(at)]))
/** An object with one property, because the arguments of a tool are an object. */
const holding = (schema: unknown, more: object = {}): string =>
  JSON.stringify({ type: "object", properties: { a: schema }, required: ["a"], ...more })
const text = (pattern: string) => ({ type: "string", pattern })

export const hostileSchemas: ReadonlyArray<HostileSchema> = [
  {
    name: "a megabyte of values",
    json: holding({ enum: many(20_000, (at) => `${at}`.padEnd(47, "x")) }),
    problem: /must be at most 262144 bytes|must have at most 16000 values/,
  },
  {
    name: "a megabyte of description",
    json: holding({ description: "d".repeat(1_000_000) }),
    problem: /must be at most 262144 bytes/,
  },
  {
    name: "10,000 levels",
    json: `${'{"properties":{"a":'.repeat(10_000)}{}${"}}".repeat(10_000)}`,
    problem: /is nested more than 128 levels deep/,
    at: "body",
  },
  {
    name: "100 levels",
    json: `${'{"properties":{"a":'.repeat(50)}{}${"}}".repeat(50)}`,
    problem: /is nested more than 64 levels deep/,
  },
  {
    name: "2 ** 30 combinations of alternatives",
    json: holding({
      allOf: many(30, (at) => ({
        anyOf: [{ properties: { [`a${at}`]: { const: 1 } } }, { properties: { [`b${at}`]: { const: 1 } } }],
      })),
    }),
    problem: /more than 1000 combinations/,
    isLong: true,
  },
  {
    name: "references that double 60 times",
    json: holding(
      { $ref: "#/$defs/d0" },
      {
        $defs: Object.fromEntries(
          many(60, (at) => [
            `d${at}`,
            { anyOf: many(2, () => ({ $ref: `#/$defs/d${Math.min(59, at + 1)}` })) },
          ]),
        ),
      },
    ),
    problem: /without end|limit|combinations/,
    isLong: true,
  },
  {
    name: "patterns whose product is large",
    json: holding({ allOf: [7, 11, 13, 17].map((count) => text(`^(a{${count}})*$`)) }),
    problem: /automaton of more than 5000 states/,
  },
  {
    name: "a pattern that is none",
    json: holding(text("(")),
    problem: /pattern|expression|group/i,
  },
  {
    name: "contradictory bounds",
    json: holding({ type: "integer", minimum: 5, maximum: 4 }),
    problem: /minimum|maximum|no value|between/,
  },
  {
    name: "contradictory lengths",
    json: holding({ type: "string", minLength: 5, maxLength: 4 }),
    problem: /minLength|maxLength|no value|between/,
  },
  {
    name: "a reference to itself",
    json: holding({ $ref: "#/$defs/a" }, { $defs: { a: { $ref: "#/$defs/a" } } }),
    problem: /without end|itself/,
  },
  {
    // A fast machine compiles 1,000 within the limit of time.
    name: "4,000 optional properties",
    json: JSON.stringify({ type: "object", properties: keyed(4_000, () => ({ type: "string" })) }),
    problem: /too large/,
    isLong: true,
    isSlow: true,
  },
  {
    name: "40 patterns with many states",
    json: JSON.stringify({ type: "object", properties: keyed(40, (at) => text(`^(.*${at}.{10})$`)) }),
    problem: /too large|limit/,
    isLong: true,
    isSlow: true,
  },
  {
    name: "4,900 counted properties",
    json: JSON.stringify({
      type: "object",
      properties: keyed(4_900, () => ({ type: "string" })),
      minProperties: 200,
    }),
    problem: /too complex/,
    isLong: true,
    isSlow: true,
  },
]

/** Where a schema may stand in a request. */
export interface SchemaForm {
  readonly name: string
  readonly path: string
  /** The name of the field that has the schema. */
  readonly field: string
  /** The whole body, with this JSON text as the schema. */
  readonly body: (model: string, schema: string) => string
}

const chatPath = "/v1/chat/completions"
const responsesPath = "/v1/responses"
const marker = "the schema"

const form = (name: string, path: string, field: string, fields: object): SchemaForm => ({
  name,
  path,
  field,
  body: (model, schema) => {
    const begin = path === responsesPath ? { input: "hi" } : { messages: [userSays("hi")] }
    return JSON.stringify({ model, ...begin, ...fields }).replace(`"${marker}"`, () => schema)
  },
})

const small = { type: "object", properties: {} }

export const schemaForms: ReadonlyArray<SchemaForm> = [
  form("a tool", chatPath, "tools[1].function.parameters", {
    tools: [fn("a", { parameters: small }), fn("b", { parameters: marker }), fn("c")],
  }),
  form("a strict tool that is demanded", chatPath, "tools[0].function.parameters", {
    tools: [fn("a", { parameters: marker, strict: true })],
    tool_choice: "required",
  }),
  form("a function", chatPath, "functions[1].parameters", {
    functions: [{ name: "a" }, { name: "b", parameters: marker }],
  }),
  form("a response format", chatPath, "response_format.json_schema.schema", {
    response_format: { type: "json_schema", json_schema: { name: "x", schema: marker } },
  }),
  form("a response format beside tools", chatPath, "response_format.json_schema.schema", {
    tools: [fn("a", { parameters: small })],
    response_format: { type: "json_schema", json_schema: { name: "x", schema: marker } },
  }),
  form("a tool of the Responses API", responsesPath, "tools[1].parameters", {
    tools: [
      { type: "function", name: "a" },
      { type: "function", name: "b", parameters: marker },
    ],
  }),
  form("a format of the Responses API", responsesPath, "text.format.schema", {
    text: { format: { type: "json_schema", name: "x", schema: marker } },
  }),
]

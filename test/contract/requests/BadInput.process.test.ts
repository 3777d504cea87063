// Invalid input: every parameter at, below and above its bounds and of the wrong type, bodies that are
// no requests, and bytes that are not HTTP. Each gets its documented status and a detail that names the
// field, and nothing is left behind: no slot, no waiting request, no money.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import {
  chunkedBytes,
  headerOf,
  jsonOf,
  RawConnection,
  type RawResponse,
  rawRequest,
  requestBytes,
} from "../../support/clients/RawHttp.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { isIdle, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
const balance = () =>
  node.run(
    Effect.gen(function* () {
      yield* (yield* UsageLedger).flush
      return (yield* (yield* Accounts).showOrg("credit")).creditsMicroDollars
    }),
  )

beforeAll(async () => {
  node = await startNode({ models: [{ ...fakeModel, options: { slots: 4 } }] })
})
afterAll(() => node.stop())

const chatPath = "/v1/chat/completions"
const completionsPath = "/v1/completions"
const chat = { model: "fake", messages: [{ role: "user", content: "hi" }] }
const completion = { model: "fake", prompt: "hi" }
const endpoints = [
  [chatPath, chat],
  [completionsPath, completion],
] as const

const post = async (path: string, body: string | Uint8Array, headers: Record<string, string> = {}) =>
  rawRequest(
    node.port,
    requestBytes(
      "POST",
      path,
      { authorization: `Bearer ${node.keys.credit}`, "content-type": "application/json", ...headers },
      body,
    ),
  )

/** A refusal in the documented form: one field, `detail`, that starts with the field at fault. */
const expectRefusal = (response: RawResponse, status: number, field: string): void => {
  expect([response.status, response.body.toString("utf8")]).toEqual([status, expect.any(String)])
  expect(headerOf(response, "content-type")).toMatch(/^application\/json/)
  const body = jsonOf(response) as { readonly detail: string }
  expect(Object.keys(body)).toEqual(["detail"])
  expect(body.detail.startsWith(`${field}: `), body.detail).toBe(true)
  // One readable sentence: no stack, no path, and not as long as the request.
  expect(body.detail).not.toMatch(/\n|node_modules|\.ts\b/)
  expect(body.detail.length).toBeLessThan(300)
}

/** Raw JSON of a value, so that a row may hold what JSON.stringify cannot write. */
interface Parameter {
  readonly good: ReadonlyArray<string>
  readonly bad: ReadonlyArray<string>
}
const anyType = ["true", '"x"', "[]", "[1]", "{}", '{"a":1}']
const except = (...types: ReadonlyArray<string>) => anyType.filter((each) => !types.includes(each))
const huge = ["1e308", "-1e308", "1e400", "-1e400", "9007199254740993", "123456789012345678901234567890"]

const tooManyBiases = JSON.stringify(
  Object.fromEntries(Array.from({ length: 301 }, (_, token) => [token, 1])),
)

const parameters: Readonly<Record<string, Parameter>> = {
  max_tokens: { good: ["1", "4096", "null", "7.0"], bad: ["0", "-1", "4097", "1.5", ...huge, ...anyType] },
  max_completion_tokens: { good: ["1", "4096", "null"], bad: ["0", "4097", ...huge, ...anyType] },
  temperature: {
    good: ["0", "2", "0.0", "1e-300", "-0", "null"],
    bad: ["-0.000001", "2.000001", ...huge, ...anyType],
  },
  top_p: { good: ["0", "1", "0.5", "null"], bad: ["-0.001", "1.001", ...huge, ...anyType] },
  top_k: { good: ["-1", "0", "1", "50", "null"], bad: ["-2", "0.5", ...huge, ...anyType] },
  frequency_penalty: { good: ["-2", "2", "0", "null"], bad: ["-2.01", "2.01", ...huge, ...anyType] },
  presence_penalty: { good: ["-2", "2", "0", "null"], bad: ["-2.01", "2.01", ...huge, ...anyType] },
  stop: {
    good: ['"a"', '["a"]', '["a","b","c","d"]', "[]", "null", `["${"s".repeat(1000)}"]`],
    bad: ["5", "true", "{}", '""', '[""]', "[1]", "[null]", '["a","b","c","d","e"]', `"${"s".repeat(1001)}"`],
  },
  stream: { good: ["false", "null"], bad: ["0", "1", '"true"', ...except("true")] },
  stream_options: { good: ["null", "{}", '{"include_usage":true}'], bad: ["5", '"x"', "true"] },
  user: { good: ['"u"', '""', "null"], bad: ["5", ...except('"x"')] },
  n: { good: ["1", "2", "4", "null"], bad: ["0", "5", "9", "1.5", '"1"', "[]"] },
  min_tokens: { good: ["0", "3", "null"], bad: ["-1", "4097", "1.5", '"1"', "[]"] },
  logit_bias: {
    good: ["null", "{}", '{"50256":-100}', '{"0":100,"1":0.5}'],
    bad: ['{"a":1}', '{"-1":1}', '{"1":101}', '{"1":"1"}', '{"1":null}', "[]", "5", '"x"', tooManyBiases],
  },
  model: { good: ['"fake"'], bad: ['""', "null", "5", ...except('"x"')] },
}

/** The body with one field written as it stands. */
const withField = (body: object, field: string, json: string): string => {
  const rest = Object.entries(body).filter(([name]) => name !== field)
  return `{${[...rest.map(([name, value]) => `"${name}":${JSON.stringify(value)}`), `"${field}":${json}`].join(",")}}`
}

for (const [path, body] of endpoints) {
  describe(`POST ${path}`, () => {
    for (const [field, { bad, good }] of Object.entries(parameters)) {
      it(`takes ${field} within its bounds and refuses it beyond`, async () => {
        for (const json of good) {
          const response = await post(path, withField(body, field, json))
          expect([json, response.status, response.body.toString("utf8").slice(0, 200)]).toEqual([
            json,
            200,
            expect.any(String),
          ])
        }
        for (const json of bad) {
          const response = await post(path, withField(body, field, json))
          const { detail } = jsonOf(response) as { readonly detail: string }
          const named = /^stop\[\d\]: /.test(detail) ? detail.slice(0, detail.indexOf(":")) : field
          expectRefusal(response, 400, named)
        }
      })
    }

    it("answers 404 for a model that is not deployed, whatever it is called", async () => {
      for (const model of [
        "gpt-5",
        "__proto__",
        "constructor",
        "Fake",
        "fake ",
        "llm-3.5-27b",
        "x".repeat(9000),
      ]) {
        const response = await post(path, JSON.stringify({ ...body, model }))
        expect(response.status).toBe(404)
        expect(jsonOf(response)).toEqual({ detail: "Model not loaded" })
      }
    })

    it("refuses what is no JSON object", async () => {
      for (const text of [
        "[]",
        '"x"',
        "5",
        "null",
        "true",
        "[1,2]",
        "[".repeat(100_000) + "]".repeat(100_000),
      ])
        expectRefusal(await post(path, text), 400, "body")
      const nonsense = [
        "",
        " ",
        "{",
        '{"model"',
        "nope",
        "{'model':1}",
        "\u0000",
        "[".repeat(100_000),
        '{"a":'.repeat(100_000),
      ]
      for (const text of nonsense) expectRefusal(await post(path, text), 400, "body")
      expectRefusal(await post(path, Buffer.from([0xff, 0xfe, 0x80])), 400, "body")
      expectRefusal(
        await post(path, "a=1&b=2", { "content-type": "application/x-www-form-urlencoded" }),
        400,
        "body",
      )
    })

    it("names the field that is missing", async () => {
      const { model: _, ...noModel } = body
      expectRefusal(await post(path, JSON.stringify(noModel)), 400, "model")
      expectRefusal(await post(path, '{"model":"fake"}'), 400, path === chatPath ? "messages" : "prompt")
    })

    it("refuses bodies that nest too deep, whatever the field; less is ignored in fields it does not know", async () => {
      const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
      for (const field of [...Object.keys(parameters), "metadata", "tools", "response_format"]) {
        const response = await post(path, withField(body, field, nested(100_000)))
        expectRefusal(response, 400, "body")
      }
      for (const field of Object.keys(parameters)) {
        const response = await post(path, withField(body, field, nested(100)))
        expectRefusal(response, 400, field === "stop" ? "stop[0]" : field)
      }
      for (const field of ["metadata", "seed"])
        expect((await post(path, withField(body, field, nested(100)))).status).toBe(200)
    })

    it("does not look at the content type, and takes unusual but legal JSON", async () => {
      const text = JSON.stringify(body)
      for (const type of [
        "text/plain",
        "application/octet-stream",
        "multipart/form-data; boundary=x",
        "nonsense",
      ])
        expect((await post(path, text, { "content-type": type })).status).toBe(200)
      for (const legal of [
        `\u{feff}${text}`,
        ` \n\t${text}\r\n `,
        withField(body, "ключ🔑", "1"),
        withField(body, "__proto__", '{"temperature":99,"model":"other"}'),
        withField(body, "constructor", '{"prototype":{"stop":1}}'),
        withField(body, "toString", "1"),
        withField(body, "user", '"\\ud800\\u0000\\udfff"'),
        `{"model":"other",${text.slice(1)}`,
      ])
        expect([legal, (await post(path, legal)).status]).toEqual([legal, 200])
      expect(Object.prototype).not.toHaveProperty("temperature")
    })
  })
}

describe("messages", () => {
  const send = (messages: unknown) => post(chatPath, JSON.stringify({ model: "fake", messages }))
  const image = { type: "image_url", image_url: { url: "https://example.com/a.png" } }

  it.each<readonly [string, unknown, string]>([
    ["null", null, "messages"],
    ["a text", "hi", "messages"],
    ["an object", { role: "user" }, "messages"],
    ["empty", [], "messages"],
    ["a number", [5], "messages[0]"],
    ["null inside", [null], "messages[0]"],
    ["no role", [{ content: "x" }], "messages[0].role"],
    ["an unknown role", [{ role: "robot", content: "x" }], "messages[0].role"],
    ["a role of another type", [{ role: 1, content: "x" }], "messages[0].role"],
    ["no content", [{ role: "user" }], "messages[0].content"],
    ["null content", [{ role: "user", content: null }], "messages[0].content"],
    ["content of another type", [{ role: "user", content: 5 }], "messages[0].content"],
    ["a part that is no part", [{ role: "user", content: [5] }], "messages[0].content[0]"],
    ["a part without a type", [{ role: "user", content: [{ text: "x" }] }], "messages[0].content[0].type"],
    ["a text part without text", [{ role: "user", content: [{ type: "text" }] }], "messages[0].content[0]"],
    ["an image", [{ role: "user", content: [image] }], "messages[0].content[0]"],
    [
      "an image with a text",
      [{ role: "user", content: [{ ...image, text: "x" }] }],
      "messages[0].content[0]",
    ],
    [
      "an image among texts",
      [...chat.messages, { role: "user", content: [{ type: "text", text: "x" }, image] }],
      "messages[1].content[1]",
    ],
    ["4,097 of them", Array.from({ length: 4097 }, () => chat.messages[0]), "messages"],
    ["a million of them", Array.from({ length: 1_000_000 }, () => ({})), "body"],
  ])("%s", async (_, messages, field) => {
    expectRefusal(await send(messages), 400, field)
  })

  it.each<readonly [unknown, string]>([
    [null, "prompt"],
    [5, "prompt"],
    [true, "prompt"],
    [{}, "prompt"],
    [[], "prompt"],
    [[1, "hi"], "prompt"],
    [[1.5], "prompt"],
    [[null], "prompt[0]"],
    [["hi", 5], "prompt[1]"],
    [["hi", [1]], "prompt[1]"],
    [[[1], "hi"], "prompt[1]"],
    [[[1], []], "prompt[1]"],
  ])("a prompt that is %j", async (prompt, field) => {
    expectRefusal(await post(completionsPath, JSON.stringify({ model: "fake", prompt })), 400, field)
  })
})

describe("sizes", () => {
  const capBytes = 8_000_000
  const padded = (bytes: number): string => {
    const head = `{"model":"fake","prompt":"hi","pad":"`
    return `${head}${"p".repeat(bytes - head.length - 2)}"}`
  }

  it("a body of 8 MB is read, one byte more is not", inLong, async () => {
    expect((await post(completionsPath, padded(capBytes))).status).toBe(200)
    expectRefusal(await post(completionsPath, padded(capBytes + 1)), 413, "body")
  })

  it(
    "a chunked body over 8 MB is refused where it passes them, and its connection closes",
    inLong,
    async () => {
      const connection = await RawConnection.open(node.port)
      const head = requestBytes("POST", completionsPath, {
        authorization: `Bearer ${node.keys.credit}`,
        "transfer-encoding": "chunked",
      })
      const block = Buffer.alloc(500_000, " ")
      void connection.send(Buffer.concat([head, chunkedBytes(Array.from({ length: 20 }, () => block))]))
      const response = await connection.response()
      expectRefusal(response, 413, "body")
      expect(headerOf(response, "connection")).toBe("close")
      await connection.closed
    },
  )

  it("an announced body over 8 MB is refused unread", inLong, async () => {
    const connection = await RawConnection.open(node.port)
    await connection.send(
      requestBytes("POST", completionsPath, {
        authorization: `Bearer ${node.keys.credit}`,
        "content-length": "900000000000",
      }),
    )
    expectRefusal(await connection.response(), 413, "body")
    await connection.closed
  })

  it("300 KB of headers are refused, 16 KB are not", async () => {
    const send = (bytes: number) =>
      rawRequest(
        node.port,
        requestBytes(
          "POST",
          completionsPath,
          { authorization: `Bearer ${node.keys.credit}`, "x-pad": "h".repeat(bytes) },
          JSON.stringify(completion),
        ),
      )
    expect((await send(16_000)).status).toBe(200)
    expect((await send(300_000)).status).toBe(431)
  })

  it("a credential of 10 KB is an unknown credential", async () => {
    const response = await post(completionsPath, JSON.stringify(completion), {
      authorization: `Bearer svc_${"A".repeat(10_000)}`,
    })
    expect(response.status).toBe(401)
    expect(jsonOf(response)).toEqual({ detail: "Invalid API key" })
  })
})

describe("slow bodies", () => {
  it("one that trickles, and one that stops, are answered 408", async () => {
    // The production deadlines are 30 s; the rule is the same at a hundredth.
    const transport = { bodyStallTimeoutMs: 400, bodyGraceMs: 300, bodyBytesPerSecond: 1024, lingerMs: 100 }
    const strict = await startNode({ transport })
    try {
      const begin = async () => {
        const connection = await RawConnection.open(strict.port)
        const headers = { authorization: `Bearer ${strict.keys.dev}`, "content-length": "5000" }
        await connection.send(requestBytes("POST", completionsPath, headers))
        return connection
      }
      const stopped = await begin()
      const trickling = await begin()
      const drip = setInterval(() => void trickling.send(" "), 20)
      const responses = await Promise.all([stopped.response(), trickling.response()])
      clearInterval(drip)
      for (const response of responses) expectRefusal(response, 408, "body")
      expect(strict.counts.bodiesStalled).toBe(2)
      // A quick client, all of whose request arrives at once, is served by the same listener.
      const authorization = `Bearer ${strict.keys.dev}`
      const quick = requestBytes("POST", completionsPath, { authorization }, JSON.stringify(completion))
      expect((await rawRequest(strict.port, quick)).status).toBe(200)
      await Promise.all([stopped.closed, trickling.closed])
    } finally {
      await strict.stop()
    }
  })
})

describe("afterwards", () => {
  it("refusals cost nothing and hold nothing", async () => {
    await untilIdle(node)
    const before = await balance()
    const metrics = await node.metrics()
    const refused = [
      post(chatPath, withField(chat, "temperature", "9")),
      post(chatPath, JSON.stringify({ ...chat, model: "unknown" })),
      post(chatPath, "{"),
      post(completionsPath, withField(completion, "prompt", `"${"word ".repeat(9000)}"`)),
      post(chatPath, JSON.stringify({ ...chat, messages: [] })),
    ]
    for (const response of await Promise.all(refused)) expect(response.status).toBeGreaterThanOrEqual(400)
    await untilIdle(node)
    expect(await balance()).toBe(before)
    const after = await node.metrics()
    expect(isIdle(after)).toBe(true)
    expect(after.get('edgewise_engine_restarts_total{model="fake"}')).toBe(0)
    expect(after.get('edgewise_slots{model="fake"}')).toBe(metrics.get('edgewise_slots{model="fake"}'))
    expect(node.counts.bodyBufferedBytes).toBe(0)
    expect(node.counts.replyBufferedBytes).toBe(0)
  })
})

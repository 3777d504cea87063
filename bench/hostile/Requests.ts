// Valid requests of every endpoint of the edge, as bytes and in parts: what the fuzzer mutates. Pure.
import { keyPlaceholder } from "./Placeholder.ts"

type Some<A> = readonly [A, ...ReadonlyArray<A>]

/** A valid JSON body and where it is sent. */
interface JsonCall {
  readonly path: string
  readonly body: Buffer
}

const json = (path: string, body: unknown): JsonCall => ({ path, body: Buffer.from(JSON.stringify(body)) })

const user = (content: unknown) => ({ role: "user", content })

const tool = (name: string, parameters: object) => ({ type: "function", function: { name, parameters } })

const toolCall = (id: string, name: string, values: object) => ({
  id,
  type: "function",
  function: { name, arguments: JSON.stringify(values) },
})

export const jsonCalls: Some<JsonCall> = [
  json("/v1/chat/completions", { model: "fake", messages: [user("hello")], max_tokens: 4 }),
  json("/v1/chat/completions", {
    model: "fake",
    messages: [{ role: "system", content: "be brief" }, user("one"), { role: "assistant", content: "two" }],
    max_tokens: 8,
    stream: true,
    stream_options: { include_usage: true },
    stop: ["x", "\n"],
    temperature: 0.7,
    top_p: 0.9,
    seed: 7,
  }),
  json("/v1/chat/completions", { model: "fake", messages: [user([{ type: "text", text: "part" }])] }),
  json("/v1/chat/completions", { model: "text", messages: [user("once")], max_tokens: 2, logit_bias: {} }),
  json("/v1/chat/completions", {
    model: "fake",
    messages: [
      user("what time is it"),
      { role: "assistant", content: null, tool_calls: [toolCall("call_1", "get_time", { city: "Rome" })] },
      { role: "tool", tool_call_id: "call_1", content: "21:30" },
    ],
    tools: [
      tool("get_time", { type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
    ],
    tool_choice: { type: "function", function: { name: "get_time" } },
    parallel_tool_calls: false,
    n: 2,
    logprobs: true,
    top_logprobs: 2,
    reasoning_effort: "low",
    stream: true,
  }),
  json("/v1/chat/completions", {
    model: "fake",
    messages: [user("a place")],
    response_format: {
      type: "json_schema",
      json_schema: {
        name: "place",
        strict: true,
        schema: { anyOf: [{ type: "string", minLength: 1 }, { const: 5 }] },
      },
    },
    functions: [{ name: "f", parameters: { type: "object" } }],
    function_call: "auto",
  }),
  json("/v1/completions", {
    model: "fake",
    prompt: "a",
    logprobs: 2,
    echo: true,
    best_of: 3,
    n: 2,
    max_tokens: 3,
  }),
  json("/v1/completions", { model: "text", prompt: "Once upon", max_tokens: 2, frequency_penalty: -2 }),
  json("/v1/completions", { model: "fake", prompt: "ü\u{1f600}", max_tokens: 3, stream: true }),
  json("/v1/audio/speech", { model: "voice", voice: "fake", input: "Hello there.", response_format: "pcm" }),
  json("/v1/audio/speech", { model: "voice", voice: "fake", input: "One, two.", response_format: "opus" }),
  json("/v1/audio/speech", { model: "voice", voice: "fake", input: "12:30 ≥ 5", stream: true, speed: 1.5 }),
  json("/v1/audio/speech", { model: "voice", voice: "fake", input: "Mr. Fox", response_format: "mp3" }),
  json("/v1/audio/speech", {
    model: "clone",
    voice: "http://127.0.0.1:1/a.wav",
    voice_transcript: "a",
    input: "a",
  }),
  json("/v1/models/load", { model_name: "fake" }),
  json("/v1/models/unload", { model_name: "fake" }),
]

const authorization = `authorization: Bearer ${keyPlaceholder}\r\n`

/** A POST with an exact length. */
export const post = (path: string, contentType: string, body: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}content-type: ${contentType}\r\n` +
        `content-length: ${body.length}\r\n\r\n`,
    ),
    body,
  ])

const get = (path: string, method = "GET"): Buffer =>
  Buffer.from(`${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}accept: */*\r\n\r\n`)

const chunks = (body: Buffer, size: number): Buffer => {
  const parts: Array<Buffer> = []
  for (let at = 0; at < body.length; at += size) {
    const piece = body.subarray(at, at + size)
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"))
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")])
}

/** A POST in chunks of `size` bytes. Mutating the body leaves a valid head before broken framing. */
export const chunked = (path: string, contentType: string, body: Buffer, size: number) => ({
  head: Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}content-type: ${contentType}\r\n` +
      "transfer-encoding: chunked\r\n\r\n",
  ),
  body: chunks(body, size),
})

const [first] = jsonCalls

/** Whole requests whose heads are mutated as well. */
export const wholeRequests: Some<Buffer> = [
  post(first.path, "application/json", first.body),
  get("/health"),
  get("/v1/models"),
  get("/v1/models/fake"),
  get("/v1/models/status"),
  get("/v1/models/logs?model_name=fake&lines=10"),
  get("/v1/audio/voices?model=voice"),
  get("/v1/audio/transcriptions?id=job_000000000000000000000000"),
  get("/v1/audio/transcriptions?id=job_000000000000000000000000", "DELETE"),
  get("/metrics"),
  get("/openapi.json"),
  get("/docs", "HEAD"),
  get("/"),
  get("/v1/chat/completions", "OPTIONS"),
  get("/v1/gpu/status"),
]

const boundary = "fuzz"
export const multipartType = `multipart/form-data; boundary=${boundary}`

/** A multipart body of fields and one file. */
export const upload = (
  file: Buffer,
  filename: string,
  fields: Readonly<Record<string, string>> = {},
): Buffer => {
  const field = ([name, value]: readonly [string, string]) =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  return Buffer.concat([
    Buffer.from(Object.entries(fields).map(field).join("")),
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${filename}"\r\n` +
        "content-type: application/octet-stream\r\n\r\n",
    ),
    file,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])
}

/** Answers with the text, with segments, or as events. */
export const uploadFields: Some<Readonly<Record<string, string>>> = [
  { model: "ear", sync: "true" },
  { model: "ear", sync: "true", response_format: "verbose_json", language: "en" },
  { model: "ear", stream: "true" },
]

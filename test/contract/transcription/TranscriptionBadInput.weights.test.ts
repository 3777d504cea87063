// Invalid uploads: each row gets its documented status and a detail that names the
// field, and leaves no file and no work behind.
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { clipBytes, clips } from "../../support/audio/SpeechClips.ts"
import { videoWithoutSound } from "../../support/audio/VideoFile.ts"
import { field, filePart, multipart, type Part } from "../../support/clients/MultipartBody.ts"
import {
  chunkedBytes,
  jsonOf,
  RawConnection,
  type RawResponse,
  rawRequest,
  requestBytes,
} from "../../support/clients/RawHttp.ts"
import {
  metered,
  model,
  path,
  untilNoUploads,
  uploads,
  whisper,
} from "../../support/clients/TranscriptionClient.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
const folder = mkdtempSync(join(tmpdir(), "edgewise-bad-"))
const audio = clipBytes(clips[0]!)
let silentVideo: Buffer

beforeAll(async () => {
  node = await startNode({ models: [whisper, fakeModel] })
  // Which languages a model knows is known once it has loaded.
  await eventually(() => node.status(model) === "loaded", "the model has loaded")
  const file = join(folder, "video")
  videoWithoutSound(file)
  silentVideo = readFileSync(file)
})
afterAll(async () => {
  await node.stop()
  rmSync(folder, { recursive: true, force: true })
})
// Every test of this file leaves an empty folder, an idle engine and an empty bill.
afterEach(async () => {
  await untilNoUploads(node.dataDir)
  await eventually(
    async () => (await node.metrics()).get("edgewise_requests_in_flight") === 0,
    "nothing is in flight",
  )
  expect(await metered(node, "dev")).toEqual({ requests: 0, audioMs: 0 })
})

const headers = (contentType: string) => ({
  authorization: `Bearer ${node.keys.dev}`,
  "content-type": contentType,
})
const target = (query: Record<string, string>): string => `${path}?${new URLSearchParams(query)}`
const sync = { model, sync: "true" }

const send = (parts: ReadonlyArray<Part>, query: Record<string, string> = sync): Promise<RawResponse> => {
  const { body, contentType } = multipart(parts)
  return rawRequest(node.port, requestBytes("POST", target(query), headers(contentType), body))
}

const expectRefusal = (response: RawResponse, status: number, detail: RegExp): void => {
  const body = jsonOf(response) as { readonly detail: string }
  expect([response.status, body.detail]).toEqual([status, expect.stringMatching(detail)])
  expect(Object.keys(body)).toEqual(["detail"])
  expect(body.detail).not.toMatch(/\n|node_modules|\.ts\b|\/tmp|uploads/)
  expect(body.detail.length).toBeLessThan(300)
}

describe("files", () => {
  const rows: ReadonlyArray<readonly [string, () => ReadonlyArray<Part>, RegExp]> = [
    ["no file", () => [field("language", "en")], /^file: is required$/],
    ["no part at all", () => [], /^file: is required$/],
    ["two files", () => [filePart(audio), filePart(audio)], /^file: must be given once$/],
    ["a file by another name", () => [filePart(audio, "a.wav", "audio")], /^audio: is a file/],
    ["a file without a name", () => [filePart(audio, "a.wav", "")], /^body: is a file/],
    ["a file by a very long name", () => [filePart(audio, "a.wav", "x".repeat(500))], /^x{64}: is a file/],
    ["a file sent as a field", () => [field("file", "hello")], /^file: must be sent as a file/],
    ["an empty file", () => [filePart("")], /^file: is empty$/],
    ["text named .mp3", () => [filePart("Once upon a time", "story.mp3")], /^file: .*is not MP3/],
    [
      "a picture",
      () => [filePart(Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), "a.wav")],
      /^file: /,
    ],
    ["video without sound", () => [filePart(silentVideo, "a.mp4")], /^file: .*no audio/],
    ["a header and nothing else", () => [filePart(audio.subarray(0, 44))], /^file: /],
    ["half a header", () => [filePart(audio.subarray(0, 20))], /^file: /],
  ]
  it.each(rows)("%s", async (_, parts, detail) => {
    expectRefusal(await send(parts()), 400, detail)
  })

  it.each([
    ["a way up", "../../etc/passwd"],
    ["a path", "/etc/passwd"],
    ["a way up on Windows", "..\\..\\a"],
    ["a line end", "a%0d%0ab"],
    ["a very long one", "x".repeat(3000)],
    ["a quoted way up", "%2e%2e%2f"],
    // Without a name the part is no file.
    ["none", ""],
    // No part head may hold it.
    ["a null", "a\0b"],
  ])("a file name means nothing: %s", async (_, filename) => {
    expectRefusal(await send([filePart("not audio", filename)]), 400, /^(file|body): /)
  })

  it("names like a path while the file is written land under a name of our own", async () => {
    const connection = await RawConnection.open(node.port)
    const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="../../escaped"\r\n\r\n'
    const request = requestBytes("POST", target(sync), {
      ...headers("multipart/form-data; boundary=b"),
      "content-length": "1000000",
    })
    await connection.send(Buffer.concat([request, Buffer.from(head), Buffer.alloc(100_000)]))
    await eventually(() => uploads(node.dataDir).length === 1, "the file is being written")
    expect(uploads(node.dataDir)[0]).toMatch(/^[0-9a-f-]{36}$/)
    connection.destroy()
  })
})

describe("parameters", () => {
  const rows: ReadonlyArray<readonly [string, Record<string, string>, number, RegExp]> = [
    ["no model", { sync: "true" }, 400, /^model: is required$/],
    ["an unknown model", { ...sync, model: "whisper-9" }, 404, /^Model not loaded$/],
    ["part of a model's name", { ...sync, model: "stt-multi" }, 404, /^Model not loaded$/],
    [
      "a model that does not transcribe",
      { ...sync, model: "fake" },
      400,
      /^model: fake does not transcribe$/,
    ],
    ["a language that is not served", { ...sync, language: "xx" }, 400, /^language: .*does not know/],
    ["a language by its name", { ...sync, language: "english" }, 400, /^language: must be an ISO-639-1/],
    ["a language in capitals", { ...sync, language: "EN" }, 400, /^language: /],
    [
      "a temperature over 1",
      { ...sync, temperature: "1.0001" },
      400,
      /^temperature: must be between 0 and 1$/,
    ],
    ["a temperature below 0", { ...sync, temperature: "-0.1" }, 400, /^temperature: /],
    ["no number", { ...sync, temperature: "warm" }, 400, /^temperature: /],
    ["an infinite number", { ...sync, temperature: "Infinity" }, 400, /^temperature: /],
    ["a hexadecimal number", { ...sync, temperature: "0x1" }, 400, /^temperature: /],
    [
      "an unknown format",
      { ...sync, response_format: "xml" },
      400,
      /^response_format: must be one of json, text/,
    ],
    ["a format in capitals", { ...sync, response_format: "JSON" }, 400, /^response_format: /],
    ["no flag", { model, sync: "yes" }, 400, /^sync: must be true or false$/],
    ["no flag either", { model, stream: "2" }, 400, /^stream: must be true or false$/],
    ["no punctuation flag", { ...sync, punctuation: "some" }, 400, /^punctuation: must be true or false$/],
    ["an unknown granularity", { ...sync, "timestamp_granularities[]": "letter" }, 400, /^timestamp_gran/],
    ["a prompt of a novel's length", { ...sync, prompt: "x".repeat(4097) }, 400, /^prompt: /],
  ]

  it.each(rows)("%s", async (_, query, status, detail) => {
    expectRefusal(await send([filePart(audio)], query), status, detail)
    // The same in the form, before the file and behind it; only a job needs its model in the query.
    const fields = Object.entries(query).map(([name, value]) => field(name, value))
    expectRefusal(await send([...fields, filePart(audio)], {}), status, detail)
    expectRefusal(await send([filePart(audio), ...fields], {}), status, detail)
  })

  it("errors of the query are reported before the file is sent", async () => {
    for (const [, query, status, detail] of rows.slice(1)) {
      const connection = await RawConnection.open(node.port)
      await connection.send(
        requestBytes("POST", target(query), {
          ...headers("multipart/form-data; boundary=b"),
          "content-length": "50000000",
        }),
      )
      expectRefusal(await connection.response(), status, detail)
      connection.destroy()
    }
  })

  it.each(["1e-3", "1.", ".5", "+0.5", "0.50", "1", "1e0"])(
    "a temperature of %s is a number",
    async (text) => {
      // Refused for its file alone.
      expectRefusal(await send([filePart("no audio")], { ...sync, temperature: text }), 400, /^file: /)
    },
  )
})

describe("bodies", () => {
  const good = multipart([filePart("no audio")], "boundary")
  const raw = (contentType: string | undefined, body: Uint8Array | string): Promise<RawResponse> => {
    const { "content-type": _, ...others } = headers("")
    const all = contentType === undefined ? others : { ...others, "content-type": contentType }
    return rawRequest(node.port, requestBytes("POST", target(sync), all, body))
  }

  it.each([
    ["no content type", undefined, good.body, /^body: must be multipart/],
    ["JSON", "application/json", '{"file":"x"}', /^body: must be multipart/],
    [
      "a form that is not multipart",
      "application/x-www-form-urlencoded",
      "file=x",
      /^body: must be multipart/,
    ],
    ["no boundary", "multipart/form-data", good.body, /^body: must be multipart/],
    ["an empty boundary", "multipart/form-data; boundary=", good.body, /^body: /],
    ["another boundary", "multipart/form-data; boundary=other", good.body, /^body: /],
    ["no end", good.contentType, good.body.subarray(0, -4), /^body: is not complete/],
    [
      "an end in the middle of the file",
      good.contentType,
      good.body.subarray(0, -20),
      /^body: is not complete/,
    ],
    ["an end in a part's head", good.contentType, good.body.subarray(0, 30), /^body: is not complete/],
    [
      "a boundary in the head of the first part",
      "multipart/form-data; boundary=b",
      '--b\r\ncontent-disposition: form-data; name="model"\r\n--b\r\n\r\nx\r\n--b--\r\n',
      /^body: is not complete/,
    ],
    ["an empty body", good.contentType, "", /^(body|file): /],
    [
      "noise",
      good.contentType,
      Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7919) & 255)),
      /^(body|file): /,
    ],
    [
      "a part without a name",
      "multipart/form-data; boundary=b",
      "--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--\r\n",
      /^(body|file): /,
    ],
    [
      "a part without a head",
      "multipart/form-data; boundary=b",
      "--b\r\n\r\nx\r\n--b--\r\n",
      /^(body|file): /,
    ],
    [
      "a part of a huge head",
      "multipart/form-data; boundary=b",
      `--b\r\nx: ${"y".repeat(200_000)}\r\n\r\nx\r\n--b--\r\n`,
      /^(body|file): /,
    ],
  ] as ReadonlyArray<readonly [string, string | undefined, Uint8Array | string, RegExp]>)(
    "%s",
    async (_, contentType, body, detail) => {
      expectRefusal(await raw(contentType, body), 400, detail)
    },
  )

  it("100,000 parts are refused at the first too many", async () => {
    const parts = Array.from({ length: 100_000 }, (_, i) => field(`f${i}`, ""))
    expectRefusal(await send(parts), 400, /^body: has more than 32 parts besides 1000 keywords$/)
  })

  it("a field may be long, but not that long", async () => {
    expectRefusal(await send([field("x", "y".repeat(64 * 1024)), filePart("no audio")]), 400, /^file: /)
    expectRefusal(
      await send([field("x", "y".repeat(5_000_000))]),
      400,
      /^body: a field is larger than 65536 bytes$/,
    )
  })

  it("a body that stops in mid-part and stays open is given up, and its file with it", async () => {
    const impatient = await startNode({
      models: [fakeModel, whisper],
      transport: { bodyStallTimeoutMs: 200, bodyGraceMs: 200 },
    })
    try {
      const connection = await RawConnection.open(impatient.port)
      const request = requestBytes("POST", target(sync), {
        authorization: `Bearer ${impatient.keys.dev}`,
        "content-type": "multipart/form-data; boundary=b",
        "transfer-encoding": "chunked",
      })
      const start = multipart([filePart(audio)], "b").body.subarray(0, 20_000)
      await connection.send(Buffer.concat([request, chunkedBytes([start]).subarray(0, -5)]))
      const response = await connection.response()
      expect(response.status).toBe(408)
      await untilNoUploads(impatient.dataDir)
      connection.destroy()
    } finally {
      await impatient.stop()
    }
  })
})

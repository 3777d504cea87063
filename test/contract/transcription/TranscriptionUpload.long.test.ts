// Uploads: the six containers, the 100 MB limit to the byte, bodies of unknown length, and clients that disconnect.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { maxFileBytes } from "#services/TranscriptionUpload.ts"
import { avTargets, writeWithAv } from "../../support/audio/AudioFiles.ts"
import { clipBytes, clipSamples, clips } from "../../support/audio/SpeechClips.ts"
import { filePart, multipart, partHead } from "../../support/clients/MultipartBody.ts"
import { chunkedBytes, headerOf, jsonOf, RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import {
  model,
  path,
  post,
  untilNoUploads,
  uploads,
  whisper,
} from "../../support/clients/TranscriptionClient.ts"
import { eventually, startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
const folder = mkdtempSync(join(tmpdir(), "edgewise-upload-"))
beforeAll(async () => {
  node = await startNode({ models: [whisper] })
})
afterAll(async () => {
  await node.stop()
  rmSync(folder, { recursive: true, force: true })
})

const clip = clips[0]!
const target = `${path}?model=${model}&sync=true`
const authorization = () => `Bearer ${node.keys.dev}`

/** Twice the rate by linear interpolation: the recogniser's band is far below either limit. */
const at48kHz = (samples: Int16Array): Int16Array =>
  Int16Array.from({ length: samples.length * 3 }, (_, i) => {
    const from = samples[Math.floor(i / 3)]!
    const to = samples[Math.min(samples.length - 1, Math.floor(i / 3) + 1)]!
    return Math.round(from + ((to - from) * (i % 3)) / 3)
  })

describe("containers", () => {
  it("one content in all six gives the same text, whatever the file is called", async () => {
    // A clip of which the weights are sure: in an unsure one the changes of a lossy codec may change a letter.
    const clip = clips[3]!
    const samples = at48kHz(clipSamples(clip))
    const texts: Record<string, string> = {}
    const hear = async (name: string, bytes: Uint8Array) => {
      const response = await post(node, bytes as Uint8Array<ArrayBuffer>, {
        query: { model, sync: "true" },
      })
      expect([name, response.status]).toEqual([name, 200])
      texts[name] = ((await response.json()) as { text: string }).text
    }
    await hear("wav", clipBytes(clip))
    for (const [name, av] of Object.entries(avTargets)) {
      const file = join(folder, name)
      writeWithAv(file, samples, 48_000, av)
      await hear(name, readFileSync(file))
    }
    expect(Object.keys(texts)).toHaveLength(6)
    expect(texts.wav).not.toBe("")
    expect(new Set(Object.values(texts)).size, JSON.stringify(texts)).toBe(1)
  })
})

/** The request's head and the multipart prologue; the file's bytes are to follow. */
const opening = (lengthBytes: number | "chunked"): Buffer =>
  requestBytes("POST", target, {
    authorization: authorization(),
    "content-type": "multipart/form-data; boundary=b",
    ...(lengthBytes === "chunked"
      ? { "transfer-encoding": "chunked" }
      : { "content-length": String(lengthBytes) }),
  })
const prologue = Buffer.from(`--b\r\n${partHead(filePart(""))}`)
const epilogue = Buffer.from("\r\n--b--\r\n")

const tooLarge = {
  message: expect.stringMatching(/split/i),
  error: {
    message: expect.any(String),
    type: "invalid_request_error",
    code: "file_too_large",
  },
}

describe("the limit of 100 MB", () => {
  const piece = Buffer.alloc(1024 * 1024)

  it("one byte more is refused when that byte arrives, and nothing is kept", async () => {
    const connection = await RawConnection.open(node.port)
    await connection.send(opening(prologue.length + maxFileBytes + 1 + epilogue.length))
    await connection.send(prologue)
    for (let sent = 0; sent < maxFileBytes; sent += piece.length) await connection.send(piece)
    expect(uploads(node.dataDir)).toHaveLength(1)
    expect(connection.unread).toHaveLength(0)
    // The epilogue never comes: the answer does not wait for it. (The parser looks ahead by a boundary's length.)
    await connection.send(Buffer.alloc(1 + epilogue.length))
    const response = await connection.response()
    connection.destroy()
    expect(response.status).toBe(413)
    expect(jsonOf(response)).toEqual(tooLarge)
    await untilNoUploads(node.dataDir)
  })

  it("holds for a body of unknown length", async () => {
    const connection = await RawConnection.open(node.port)
    await connection.send(opening("chunked"))
    const framed = (bytes: Uint8Array) => chunkedBytes([bytes]).subarray(0, -"0\r\n\r\n".length)
    await connection.send(framed(prologue))
    const chunk = framed(piece)
    for (let sent = 0; sent < maxFileBytes; sent += piece.length) await connection.send(chunk)
    expect(connection.unread).toHaveLength(0)
    await connection.send(framed(Buffer.alloc(64)))
    const response = await connection.response()
    connection.destroy()
    expect([response.status, jsonOf(response)]).toEqual([413, tooLarge])
    await untilNoUploads(node.dataDir)
  })

  it("a body that announces too much is refused unread", async () => {
    const connection = await RawConnection.open(node.port)
    await connection.send(opening(2 * maxFileBytes))
    const response = await connection.response()
    expect([response.status, jsonOf(response)]).toEqual([413, tooLarge])
    expect(headerOf(response, "content-type")).toMatch(/^application\/json/)
    connection.destroy()
    expect(uploads(node.dataDir)).toEqual([])
  })

  it("exactly 100 MB pass, and are looked at", async () => {
    const connection = await RawConnection.open(node.port)
    await connection.send(opening(prologue.length + maxFileBytes + epilogue.length))
    await connection.send(prologue)
    for (let sent = 0; sent < maxFileBytes; sent += piece.length) await connection.send(piece)
    await connection.send(epilogue)
    const response = await connection.response()
    connection.destroy()
    // A hundred megabytes of zeros are no audio, but exactly at the limit.
    expect(response.status).toBe(400)
    expect((jsonOf(response) as { detail: string }).detail).toMatch(/^file: /)
    await untilNoUploads(node.dataDir)
  })
})

describe("clients that leave", () => {
  it("in the middle of a part leave no file", async () => {
    const connection = await RawConnection.open(node.port)
    await connection.send(opening(10_000_000))
    await connection.send(prologue)
    await connection.send(Buffer.alloc(300_000))
    await eventually(() => uploads(node.dataDir).length === 1, "the file is being written")
    connection.destroy()
    await untilNoUploads(node.dataDir)
  })

  it("while their file is transcribed leave no file and no work", async () => {
    const { body, contentType } = multipart([filePart(clipBytes(clip))])
    for (let i = 0; i < 5; i++) {
      const connection = await RawConnection.open(node.port)
      const headers = { authorization: authorization(), "content-type": contentType }
      await connection.send(requestBytes("POST", target, headers, body))
      await eventually(() => uploads(node.dataDir).length > 0, "the file is there")
      connection.destroy()
      await untilNoUploads(node.dataDir)
    }
    await eventually(
      async () => (await node.metrics()).get(`edgewise_requests_in_flight`) === 0,
      "nothing is in flight",
    )
  })

  it("by half: a finished half of a connection is a body that is not complete", async () => {
    const connection = await RawConnection.open(node.port)
    await connection.send(opening("chunked"))
    await connection.send(chunkedBytes([prologue, clipBytes(clip)]))
    const response = await connection.response()
    connection.destroy()
    expect([response.status, jsonOf(response)]).toEqual([
      400,
      { detail: "body: is not complete and correct multipart/form-data" },
    ])
    await untilNoUploads(node.dataDir)
  })
})

describe("a disk that cannot be written", () => {
  it("is a failure of the server, reported without its paths", async () => {
    const broken = await startNode({ models: [whisper] })
    try {
      writeFileSync(join(broken.dataDir, "uploads"), "a file where the folder should be")
      const file = clipBytes(clip) as Uint8Array<ArrayBuffer>
      const response = await post(broken, file, { query: { model, sync: "true" } })
      expect(response.status).toBe(500)
      expect(await response.text()).not.toMatch(/uploads|EEXIST|ENOTDIR|\/tmp/)
    } finally {
      await broken.stop()
    }
  })
})

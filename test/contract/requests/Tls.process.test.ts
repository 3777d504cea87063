// A node over TLS, as its clients see it: curl, the official client's chat and realtime connections, uploads, live
// sessions, clients that leave, and a stop. Without the authority's certificate none of them connects.
import { execFile } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import OpenAI from "openai"
import { OpenAIRealtimeWS } from "openai/realtime/ws"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Drain } from "#actors/Drain.ts"
import {
  lastWord,
  listener,
  noise,
  openLive,
  speak,
  syncAnswer,
  wavOf,
} from "../../support/clients/LiveClient.ts"
import { rawRequest } from "../../support/clients/RawHttp.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { TextStream, textOf } from "../../support/clients/TextStream.ts"
import { post } from "../../support/clients/TranscriptionClient.ts"
import { needs } from "../../support/groups/Needs.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeVoice, speechRequestBytes } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"
import {
  filesIn,
  makeAuthority,
  makePair,
  trustHere,
  writePair,
} from "../../support/servers/TestCertificates.ts"

const authority = await makeAuthority()
const authorityPem = authority.certificate.toString("pem")
trustHere(authorityPem)
const dir = temporaryDir()
const caFile = join(dir.path, "authority.pem")
const files = filesIn(dir.path)

const start = () =>
  startNode({
    models: [fakeModel, listener(), fakeVoice],
    tls: true,
    settings: { tlsCert: files.cert, tlsKey: files.key },
  })

let node: TestNode
beforeAll(async () => {
  writeFileSync(caFile, authorityPem)
  writePair(files, await makePair({ issuer: authority }))
  node = await start()
  await untilLoaded(node, "fake", "listener", "fake-voice")
})
afterAll(async () => {
  await node.stop()
  dir.remove()
})

const chat = (target: TestNode, steps: Readonly<Record<string, unknown>>, signal?: AbortSignal) =>
  target.post(
    "/v1/chat/completions",
    { model: "fake", stream: true, max_tokens: 4096, messages: [{ role: "user", content: script(steps) }] },
    signal === undefined ? {} : { signal },
  )

describe("curl", needs("curl"), () => {
  const curl = (...args: ReadonlyArray<string>) =>
    promisify(execFile)("curl", ["-sS", "--max-time", "60", ...args], { encoding: "utf8" })
  const body = JSON.stringify({
    model: "fake",
    stream: true,
    messages: [{ role: "user", content: script({ tokens: 5, text: "w " }) }],
  })

  it("streams a chat with --cacert, and refuses without", async () => {
    const url = `${node.base}/v1/chat/completions`
    const request = [
      "-N",
      url,
      "-H",
      `Authorization: Bearer ${node.keys.dev}`,
      "-H",
      "Content-Type: application/json",
    ]
    const { stdout } = await curl("--cacert", caFile, ...request, "-d", body)
    expect(textOf(stdout.split("\n\n").flatMap((event) => /^data: (.*)/.exec(event)?.[1] ?? []))).toBe(
      "w w w w w ",
    )
    await expect(curl(...request, "-d", body)).rejects.toThrow(/certificate/i)
  })
})

describe("the openai package", () => {
  const client = () => new OpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1`, maxRetries: 0 })

  it("chats over https", async () => {
    const stream = await client().chat.completions.create({
      model: "fake",
      stream: true,
      messages: [{ role: "user", content: script({ tokens: 4, text: "x" }) }],
    })
    let said = ""
    for await (const { choices } of stream) said += choices[0]?.delta.content ?? ""
    expect(said).toBe("xxxx")
  })

  it("transcribes by its realtime connection over wss, with the authority named to it", async () => {
    const socket = new OpenAIRealtimeWS({ model: "listener", options: { ca: authorityPem } }, client())
    expect(socket.url.protocol).toBe("wss:")
    const transcript = new Promise<string>((resolve, reject) => {
      socket.on("error", reject)
      socket.on("conversation.item.input_audio_transcription.completed", (event) => resolve(event.transcript))
    })
    await new Promise((resolve) => socket.on("session.created", resolve))
    socket.send({
      type: "session.update",
      session: {
        type: "transcription",
        audio: { input: { format: { type: "audio/pcm", rate: 24_000 }, turn_detection: null } },
      },
    })
    const pcm = noise(4.5, 7)
    for (let at = 0; at < pcm.length; at += 9_600) {
      const audio = pcm.subarray(at, at + 9_600).toString("base64")
      socket.send({ type: "input_audio_buffer.append", audio })
    }
    socket.send({ type: "input_audio_buffer.commit" })
    expect((await transcript).split(" ").length).toBeGreaterThan(5)
    socket.close()
  })

  it("is not connected where it does not trust the certificate", async () => {
    const socket = new OpenAIRealtimeWS({ model: "listener", options: { ca: [] } }, client())
    const error = await new Promise<Error>((resolve) => socket.on("error", resolve))
    expect(error.message).toMatch(/certificate/)
  })
})

describe("everything else", () => {
  it("speech is streamed", async () => {
    const bytes = speechRequestBytes(node, {
      model: "fake-voice",
      voice: "fake",
      input: "Hello there.",
      stream: true,
    })
    const reply = await rawRequest(node.port, bytes)
    expect([reply.status, reply.complete]).toEqual([200, true])
    expect(reply.body.length).toBeGreaterThan(1_000)
  })

  it("an upload of 100 MB arrives whole", inLong, async () => {
    const wav = wavOf(noise(3, 5))
    const small = await post(node, wav, { query: { sync: "true", model: "listener" } })
    expect(small.status).toBe(200)
    // The same audio, made large by a block that readers of WAV files skip.
    const padding = Buffer.alloc(100_000_000 - wav.length - 8)
    const block = Buffer.alloc(8)
    block.write("junk", 0)
    block.writeUInt32LE(padding.length, 4)
    const head = Buffer.from(wav.subarray(0, 36))
    head.writeUInt32LE(100_000_000 - 8, 4)
    const large = Buffer.concat([head, block, padding, wav.subarray(36)])
    const answer = await post(node, large, { query: { sync: "true", model: "listener" } })
    expect([answer.status, await answer.json()]).toEqual([200, await small.json()])
  })

  it("a live session ends in the text of a file of the same audio", async () => {
    const pcm = noise(4, 3)
    const client = await openLive(node, { model: "listener" })
    speak(client, pcm, 6_400)
    client.send({ type: "stop" })
    const { text } = await syncAnswer(node, pcm, { model: "listener" })
    expect((await lastWord(client)).text).toBe(text)
  })

  it("completions on a socket are answered", async () => {
    const url = `${node.socketBase}/v1/completions/ws?token=${node.keys.dev}`
    const client = await SocketClient.open(url)
    client.send({ request_id: "a", model: "fake", prompt: script({ tokens: 3 }) })
    expect(await client.end("a")).toMatchObject({ type: "done" })
    client.socket.close()
  })

  it("a client that leaves frees its slot", async () => {
    const leaving = new AbortController()
    const stream = new TextStream(await chat(node, { tokens: 4_000, tokenMs: 20 }, leaving.signal))
    await stream.take(2)
    expect((await node.metrics()).get('edgewise_slots_busy{model="fake"}')).toBe(1)
    leaving.abort()
    await untilIdle(node)
  })

  it("a reader that is slow gets everything", async () => {
    const stream = new TextStream(await chat(node, { tokens: 4_000, text: "y".repeat(500) }))
    await stream.take(1)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await stream.toEnd()).toBe("complete")
    expect(textOf(stream.events).length).toBe(2_000_000)
  })

  it("a stop lets a stream end", async () => {
    const stopping = await start()
    await untilLoaded(stopping, "fake")
    const stream = new TextStream(await chat(stopping, { tokens: 50, tokenMs: 10, text: "z" }))
    await stream.take(2)
    await stopping.run(Effect.flatMap(Drain, (drain) => drain.close))
    await stopping.run(stopping.listener.drain)
    expect(await stream.toEnd()).toBe("complete")
    expect(textOf(stream.events)).toBe("z".repeat(50))
    await stopping.stop()
  })
})

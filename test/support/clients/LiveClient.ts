// Live transcription for tests: speech to send, clients that send it, and the answer for a file of the same samples.
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { wavOf } from "../audio/WavFile.ts"
import type { TestModel } from "../nodes/TestCatalog.ts"
import { eventually, type TestNode } from "../nodes/TestNode.ts"
import { SocketClient } from "./SocketClient.ts"
import { post } from "./TranscriptionClient.ts"

export { wavOf } from "../audio/WavFile.ts"

/** A fake model that transcribes an invented word for every 100 ms of audio, in pieces of two seconds, without delay. */
export const listener = (
  options: Readonly<Record<string, unknown>> = {},
  changes: Partial<TestModel> = {},
): TestModel => ({
  id: "listener",
  kind: "transcription",
  adapter: "fake-transcription",
  options: { pieceSeconds: 2, slots: 8, ...options },
  runtime: { load: "start" },
  price: { perMinute: 4000 },
  ...changes,
})

/** The caption after an event, as docs/live.md describes it for clients. */
export const captionAfter = (
  caption: string,
  { delta, op }: { readonly op: "append" | "replace"; readonly delta: string },
): string => (op === "append" ? caption + delta : delta)

/** Seconds of noise with pauses, s16 mono 16 kHz; the same for the same seed. */
export const noise = (seconds: number, seed = 1): Buffer => {
  const pcm = Buffer.alloc(Math.round(seconds * 16_000) * 2)
  let state = (seed * 7_919 + 1) >>> 0
  for (let i = 0; i < pcm.length / 2; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    // Half a second of every two and a half is quiet.
    const loud = i % 40_000 < 32_000
    pcm.writeInt16LE(loud ? (state >>> 19) - 4096 : (state >>> 28) - 8, i * 2)
  }
  return pcm
}

const evaluation = join(dirname(builtInCatalog), "whisper-demo-en/eval")

/** The built-in recogniser's evaluation clips, s16 mono 16 kHz without their WAV heads. */
export const clips: ReadonlyArray<Buffer> = (
  JSON.parse(readFileSync(join(evaluation, "transcripts.json"), "utf8")) as ReadonlyArray<{
    readonly file: string
  }>
).map(({ file }) => readFileSync(join(evaluation, file)).subarray(44))

interface Answer {
  readonly text: string
  readonly language: string
  readonly duration: number
}

/** The text that `sync=true` returns for the same samples. */
export const syncAnswer = async (
  node: TestNode,
  pcm: Buffer,
  query: Readonly<Record<string, string>>,
): Promise<Answer> => {
  const response = await post(node, wavOf(pcm), {
    query: { sync: "true", response_format: "verbose_json", ...query },
  })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Answer
}

export const liveAddress = (node: TestNode, query: Readonly<Record<string, string>> = {}): string => {
  const values = new URLSearchParams({ token: node.keys.dev, ...query })
  return `${node.socketBase}/v1/audio/transcriptions/ws?${values}`
}

/** Again while the node refuses it: while a machine is busy, captions take so long that a second session may not fit. */
export const openWhereRoom = async (
  address: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<SocketClient> => {
  let answer = await SocketClient.connect(address, headers)
  await eventually(async () => {
    if (answer instanceof SocketClient || !answer.body.includes("Model is at capacity")) return true
    answer = await SocketClient.connect(address, headers)
    return answer instanceof SocketClient
  }, "the node admits the session")
  if (answer instanceof SocketClient) return answer
  throw new Error(`refused: ${answer.status} ${answer.body}`)
}

export const openLive = (node: TestNode, query: Readonly<Record<string, string>> = {}) =>
  openWhereRoom(liveAddress(node, query))

/** Sends audio in frames of these sizes, repeated cyclically. */
export const speak = (client: SocketClient, pcm: Buffer, ...frameBytes: ReadonlyArray<number>): void => {
  for (let at = 0, i = 0; at < pcm.length; i++) {
    const size = frameBytes[i % frameBytes.length] ?? pcm.length
    client.socket.send(pcm.subarray(at, at + size))
    at += size
  }
}

const isEnd = ({ type }: Readonly<Record<string, unknown>>): boolean =>
  type === "transcript.text.done" || type === "error"

/** The event that ends a session: `transcript.text.done` or `error`. */
export const lastWord = async (client: SocketClient): Promise<Readonly<Record<string, unknown>>> => {
  await client.until((frames) => frames.some(isEnd))
  return client.frames.find(isEnd)!
}

export const deltas = (client: SocketClient): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  client.frames.filter(({ type }) => type === "transcript.text.delta")

/** The first caption that is measured may be dear on a busy machine, which makes the next ones rarer than their windows. */
export const untilCaptionsAreCheap = (node: TestNode, model: string): Promise<void> =>
  eventually(async () => {
    const client = await openLive(node, { model, window_s: "0.5" })
    // However dear they are, there is one every two seconds.
    speak(client, noise(2.5))
    await client.until(() => deltas(client).length > 0)
    const share = (await node.metrics()).get(`edgewise_live_share{model="${model}"}`)
    client.send({ type: "stop" })
    await client.closed
    return share !== undefined && share < 0.25
  }, "captions are known to be cheap")

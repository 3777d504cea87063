// kill -9 of the processes of a transcription: the engine and the decoder. Each fails only the requests that
// protocol 9.9 names, jobs continue, nothing is charged twice, and the next request is served.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { listenRateHz } from "#domain/audio/Audio.ts"
import { ringCapacity } from "#domain/audio/SampleRing.ts"
import { marks } from "#engines/fake/FakeWords.ts"
import { clipBytes, clips, sparseWav } from "../support/audio/SpeechClips.ts"
import { pcmOf, samplesOf, wavOf } from "../support/audio/WavFile.ts"
import { listener } from "../support/clients/LiveClient.ts"
import { TextStream } from "../support/clients/TextStream.ts"
import {
  metered,
  model,
  poll,
  post,
  submit,
  targetOf,
  untilDone,
  untilNoUploads,
} from "../support/clients/TranscriptionClient.ts"
import { inLong } from "../support/groups/Runs.ts"
import { eventually, startNode, type TestNode } from "../support/nodes/TestNode.ts"
import { childrenRunning, signalIfRunning } from "../support/process/ChildProcesses.ts"
import { collectLines } from "../support/process/LogLines.ts"

type Bytes = Uint8Array<ArrayBuffer>
const short = clipBytes(clips[3]!) as Bytes
/** Longer than what is decoded ahead, so that its decoder still works while it is transcribed. */
const seconds = Math.ceil(ringCapacity / listenRateHz) + 40
/** 8 s of audio take it 40 ms. */
const ears = listener({ callMs: 40, pieceSeconds: 8 }, { id: model })
const long = sparseWav(seconds) as Bytes
const crashSeconds = 150
/** The same, but the engine's process is killed by a signal in the call that has this place of it. */
const crashing = (() => {
  const samples = samplesOf(long)
  samples[crashSeconds * listenRateHz] = Math.round(marks.crash * 32_768)
  return wavOf(pcmOf(samples)) as Bytes
})()
const { layer: log, lines } = collectLines()

let node: TestNode
let text = ""
beforeAll(async () => {
  node = await startNode({ models: [ears], log })
  text = await hear(long)
})
afterAll(() => node.stop())
afterEach(async () => {
  await untilNoUploads(node.dataDir)
  expect(await hear(short)).not.toBe("")
})

const hear = async (bytes: Bytes): Promise<string> => {
  const response = await post(node, bytes, { query: { model, sync: "true" } })
  expect(response.status).toBe(200)
  return ((await response.json()) as { text: string }).text
}
const stream = async (file: Bytes): Promise<TextStream> => {
  const opened = new TextStream(await post(node, file, { query: { model, stream: "true" } }))
  await opened.take(1)
  return opened
}
/**
 * Kills the engine in the first call of what `begin` starts. It is stopped before: between two calls of a file its end would only delay
 * the next one.
 */
const killUnder = async <A>(begin: () => Promise<A>): Promise<A> => {
  const { pid } = node.gauges(model)
  expect(pid).toBeDefined()
  process.kill(pid!, "SIGSTOP")
  const begun = begin()
  await eventually(() => node.gauges(model).open === 1, "the engine is at it")
  process.kill(pid!, "SIGKILL")
  return begun
}
const untilLoaded = () => eventually(() => node.status(model) === "loaded", "the engine is back")
const textOf = (events: ReadonlyArray<string>): string =>
  (JSON.parse(events.at(-2)!) as { text: string }).text

// Three crashes in all: a fourth within 30 s would exceed its supervisor's intensity.
describe("the engine's process is killed", () => {
  it("under a stream: an error event ends it, and it costs the windows that were delivered", async () => {
    const before = await metered(node, "dev")
    const opened = await stream(crashing)
    await opened.toEnd()
    expect(opened.events.at(-1)).toBe("[DONE]")
    expect(JSON.parse(opened.events.at(-2)!)).toEqual({
      type: "error",
      error: "The model's engine stopped unexpectedly",
    })
    expect(opened.events.join("")).not.toContain("transcript.text.done")
    const charged = (await metered(node, "dev")).audioMs - before.audioMs
    // A call has 30 s of audio, and as much may be left of the window before.
    expect(charged).toBeGreaterThanOrEqual((crashSeconds - 60) * 1000)
    expect(charged).toBeLessThanOrEqual(crashSeconds * 1000)
    await untilLoaded()
  })

  it("under a synchronous request: 500, and it costs nothing", inLong, async () => {
    const before = await metered(node, "dev")
    const response = await killUnder(() => post(node, long, { query: { model, sync: "true" } }))
    expect([response.status, await response.json()]).toEqual([
      500,
      { detail: "The model's engine stopped unexpectedly" },
    ])
    expect(await metered(node, "dev")).toEqual(before)
    await untilLoaded()
  })

  it("under a job: the job goes on, and is charged once", async () => {
    const before = await metered(node, "dev")
    const target = targetOf(node)
    const id = await killUnder(() => submit(target, long))
    const done = await untilDone(target, id)
    expect(done.body.text).toBe(text)
    // It waited between both attempts.
    const postponed = lines.filter(({ message }) => String(message) === "transcription job postponed")
    expect(postponed).toMatchObject([
      { annotations: { model, job: id, error: "EngineFailed", reason: expect.stringContaining("SIGKILL") } },
    ])
    const after = await metered(node, "dev")
    expect(after).toEqual({ requests: before.requests + 1, audioMs: before.audioMs + seconds * 1000 })
  })
})

describe("a decoder's process is killed", () => {
  const decoders = () => childrenRunning("decoderMain")

  it("once: no effect on a stream, a job or an interactive request", async () => {
    const opened = await stream(long)
    for (const pid of decoders()) signalIfRunning(pid, "SIGKILL")
    await opened.toEnd()
    expect(textOf(opened.events)).toBe(text)

    const id = await submit(targetOf(node), long)
    await eventually(
      async () => (await poll(targetOf(node), id)).body.status === "processing",
      "the job runs",
    )
    await eventually(
      () => decoders().filter((pid) => signalIfRunning(pid, "SIGKILL")).length > 0,
      "it is being decoded",
    )
    expect((await untilDone(targetOf(node), id)).body.text).toBe(text)
  })

  it("again and again: an error of that request alone", inLong, async () => {
    const other = hear(short)
    const before = await metered(node, "dev")
    const opened = await stream(long)
    const killing = setInterval(() => {
      for (const pid of decoders()) signalIfRunning(pid, "SIGKILL")
    }, 5)
    try {
      await opened.toEnd()
    } finally {
      clearInterval(killing)
    }
    expect(opened.events.at(-1)).toBe("[DONE]")
    expect(JSON.parse(opened.events.at(-2)!)).toEqual({ type: "error", error: "file: cannot be decoded" })
    expect(await other).not.toBe("")
    // What was transcribed before is charged: the file itself may be what crashes decoders.
    const after = await metered(node, "dev")
    expect(after.audioMs).toBeLessThan(before.audioMs + seconds * 1000 + 10_000)
  })
})

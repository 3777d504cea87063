// Replies of the endpoint checked by third-party programs, where they are installed: the format and the length that
// they report, and that they report no error.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { needs } from "../../support/groups/Needs.ts"
import { fakeVoice, presetModel, speak, spokenScript } from "../../support/nodes/SpeechNode.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-speech-tools-"))
let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [presetModel, fakeVoice] })
})
afterAll(async () => {
  await node.stop()
  rmSync(folder, { recursive: true, force: true })
})

const run = (tool: string, args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(tool, args, { encoding: "utf8" })
  return { status, text: stdout + stderr }
}
const saved = async (name: string, body: object): Promise<string> => {
  const path = join(folder, name)
  writeFileSync(path, (await speak(node, body)).body)
  return path
}
const probe = (path: string) => {
  const entries =
    "stream=codec_name,sample_rate,channels,bit_rate,sample_fmt,start_time,duration:format=format_name"
  const { text } = run("ffprobe", ["-v", "error", "-of", "json", "-show_entries", entries, path])
  return JSON.parse(text) as {
    readonly streams: ReadonlyArray<Readonly<Record<string, string | number>>>
    readonly format: { readonly format_name: string }
  }
}
const seconds = (path: string): number => {
  const pcm = `${path}.pcm`
  const { status, text } = run("ffmpeg", [
    ...["-v", "error", "-y", "-i", path, "-f", "s16le", "-ac", "1"],
    ...["-ar", "24000", pcm],
  ])
  expect([status, text]).toEqual([0, ""])
  return statSync(pcm).size / 48_000
}

const spoken = { model: "tts-82m", voice: "af_bella", input: "Please open the window. It is warm in here." }

describe("ffprobe", needs("ffprobe"), () => {
  it("calls the replies what they are", async () => {
    const wav = probe(await saved("a.wav", { ...spoken, response_format: "wav" }))
    expect(wav.format.format_name).toBe("wav")
    expect(wav.streams).toEqual([
      expect.objectContaining({
        codec_name: "pcm_s16le",
        sample_rate: "24000",
        channels: 1,
        sample_fmt: "s16",
      }),
    ])
    const mp3 = probe(await saved("a.mp3", { ...spoken, response_format: "mp3" }))
    expect(mp3.format.format_name).toBe("mp3")
    expect(mp3.streams).toEqual([
      expect.objectContaining({ codec_name: "mp3", sample_rate: "24000", channels: 1, bit_rate: "128000" }),
    ])
    const opus = probe(await saved("a.opus", { ...spoken, response_format: "opus", stream: true }))
    expect(opus.format.format_name).toBe("ogg")
    expect(opus.streams).toEqual([
      expect.objectContaining({ codec_name: "opus", sample_rate: "48000", channels: 1 }),
    ])
  })
})

describe("ffmpeg", needs("ffmpeg"), () => {
  it("plays every format for as long as the samples say", async () => {
    const length = (await speak(node, spoken)).body.length / 48_000
    const replies = [
      ["b.wav", { response_format: "wav" }],
      ["b.mp3", { response_format: "mp3" }],
      ["b.opus", { response_format: "opus", stream: true }],
    ] as const
    for (const [name, more] of replies) {
      expect(Math.abs(seconds(await saved(name, { ...spoken, ...more })) - length)).toBeLessThan(0.03)
    }
  })
})

/** Lengths from one sample past the borders of a frame and a page to some seconds. */
const lengths = [1, 479, 480, 481, 959, 4_800, 5_281, 24_001, 71_993]
const opusOf = (samples: number): Promise<string> =>
  saved(`${samples}.opus`, {
    model: "fake-voice",
    voice: "fake",
    input: spokenScript({ pieces: 1, samples }),
    response_format: "opus",
    stream: true,
  })

it("opusinfo finds no mistake in streams of any length", needs("opusinfo"), async () => {
  for (const samples of lengths)
    expect(run("opusinfo", [await opusOf(samples)]).text).not.toMatch(/warning|error|not set|negative|hole/i)
})

it("oggz-validate finds no mistake in streams of any length", needs("oggz-validate"), async () => {
  for (const samples of lengths)
    expect(run("oggz-validate", [await opusOf(samples)])).toEqual({ status: 0, text: "" })
})

// Files of each encoder against third-party programs, each where it is installed. EncoderFiles.test.ts checks the same
// with readers of the tests' own.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { encodedLengths, encodedMp3, encodedOpus, encodedWav } from "../../support/audio/EncodedSpeech.ts"
import { needs } from "../../support/groups/Needs.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-tools-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = (tool: string, args: ReadonlyArray<string>): { status: number | null; text: string } => {
  const { status, stderr, stdout } = spawnSync(tool, args, { encoding: "utf8" })
  return { status, text: stdout + stderr }
}
const file = (name: string, bytes: Uint8Array): string => {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}

const fields = "stream=codec_name,sample_rate,channels,bit_rate:format=duration,format_name"

const probe = (path: string) => {
  const { text } = run("ffprobe", ["-v", "error", "-of", "json", "-show_entries", fields, path])
  return JSON.parse(text) as {
    readonly streams: ReadonlyArray<object>
    readonly format: { readonly duration: string }
  }
}

describe("opusinfo", needs("opusinfo"), () => {
  it.each(encodedLengths)("has no warning for %i samples of Ogg Opus", async (samples) => {
    const { text } = run("opusinfo", [file(`${samples}.opus`, await encodedOpus(samples))])
    expect(text).not.toMatch(/warning|error|not set|negative|hole/i)
    expect(text).toContain("Pre-skip: 312")
    expect(text).toContain("Original sample rate: 24000 Hz")
  })

  it("sees that a stream that was not finished has no end", async () => {
    const path = file("aborted.opus", await encodedOpus(48_000, false))
    expect(run("opusinfo", [path]).text).toMatch(/EOS not set/)
  })
})

it.each(encodedLengths)(
  "oggz-validate accepts %i samples of Ogg Opus",
  needs("oggz-validate"),
  async (samples) => {
    const path = file(`${samples}.valid.opus`, await encodedOpus(samples))
    expect(run("oggz-validate", [path])).toEqual({ status: 0, text: "" })
  },
)

/** A start of the program takes 0.2 s, and there are three for a length. */

describe("ffprobe", needs("ffprobe"), () => {
  it.each(encodedLengths)("calls %i samples what they are, in each format", async (samples) => {
    expect(probe(file(`${samples}.probed.opus`, await encodedOpus(samples))).streams).toEqual([
      expect.objectContaining({ codec_name: "opus", sample_rate: "48000", channels: 1 }),
    ])
    expect(probe(file(`${samples}.probed.mp3`, await encodedMp3(samples))).streams).toEqual([
      expect.objectContaining({ codec_name: "mp3", sample_rate: "24000", channels: 1, bit_rate: "128000" }),
    ])
    const wav = probe(file(`${samples}.probed.wav`, encodedWav(samples)))
    expect(wav.streams).toEqual([
      expect.objectContaining({
        codec_name: "pcm_s16le",
        sample_rate: "24000",
        channels: 1,
        bit_rate: "384000",
      }),
    ])
    expect(Math.round(Number(wav.format.duration) * 24_000)).toBe(samples)
  })
})

it("ffmpeg plays all of them without a complaint", needs("ffmpeg"), async () => {
  const opus: Array<string> = []
  const mp3: Array<string> = []
  for (const samples of encodedLengths) {
    opus.push(file(`${samples}.played.opus`, await encodedOpus(samples)))
    mp3.push(file(`${samples}.played.mp3`, await encodedMp3(samples)))
  }
  const files = [...opus, ...mp3]
  // One start for all files: it takes longer than playing them.
  const outputs = files.flatMap((path, at) => ["-map", `${at}`, "-f", "s16le", `${path}.pcm`])
  const played = run("ffmpeg", ["-v", "error", ...files.flatMap((path) => ["-i", path]), ...outputs])
  expect(played).toEqual({ status: 0, text: "" })
  for (const [at, samples] of encodedLengths.entries()) {
    // Under 100 samples this FFmpeg does not trim what it decodes in two packets.
    if (samples > 100) expect(statSync(`${mp3[at]}.pcm`).size / 2).toBe(samples)
  }
})

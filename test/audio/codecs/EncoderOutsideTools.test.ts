// The encoders' output checked by third-party programs, where they are installed. The suite does not need
// them (strict readers in this project check the same); the test prints which of them checked it.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { loadMp3 } from "#audio/codecs/Mp3.ts"
import { makeOggOpusEncoder, oggOpusHeaders } from "#audio/codecs/OggOpus.ts"
import { wavHeader } from "#audio/codecs/Wav.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { chirp } from "../../support/audio/AudioFiles.ts"
import { mp3Frames } from "../../support/audio/Mp3Frames.ts"
import { parseOgg } from "../../support/audio/OggPages.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-tools-"))
const asked = new Map<string, number>()
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
  const had = [...asked].map(([tool, files]) => `${tool} ${files === 0 ? "not installed" : `${files} files`}`)
  console.log(`outside tools: ${had.join(", ")}`)
})

/** The program's output for a file, or undefined where the program is not installed. */
const say = (tool: string, args: ReadonlyArray<string>): { status: number; text: string } | undefined => {
  const ran = spawnSync(tool, args, { encoding: "utf8" })
  asked.set(tool, (asked.get(tool) ?? 0) + (ran.error === undefined ? 1 : 0))
  return ran.error === undefined ? { status: ran.status ?? -1, text: ran.stdout + ran.stderr } : undefined
}
const file = (name: string, parts: ReadonlyArray<Uint8Array>): string => {
  const path = join(folder, name)
  writeFileSync(path, Buffer.concat(parts))
  return path
}
const probe = (path: string) =>
  say("ffprobe", [
    ..."-v error -of json -show_entries stream=codec_name,sample_rate,channels,bit_rate:format=duration,format_name".split(
      " ",
    ),
    path,
  ])

const LENGTHS = [1, 323, 480, 481, 4800, 24_000 * 3 + 17]

describe("outside tools", () => {
  it.each(LENGTHS)("find nothing wrong with %i samples of Ogg Opus", (samples) => {
    const encoder = makeOggOpusEncoder()
    const parts = [oggOpusHeaders(), ...encoder.push(chirp(samples, 24_000)), ...encoder.finish()]
    encoder.close()
    expect(parseOgg(new Uint8Array(Buffer.concat(parts))).pages.at(-1)?.endOfStream).toBe(true)
    const path = file(`${samples}.opus`, parts)
    const info = say("opusinfo", [path])
    if (info !== undefined) {
      expect(info.text).not.toMatch(/warning|error|not set|negative|hole/i)
      expect(info.text).toContain("Pre-skip: 312")
      expect(info.text).toContain("Original sample rate: 24000 Hz")
    }
    const valid = say("oggz-validate", [path])
    if (valid !== undefined) expect(valid).toEqual({ status: 0, text: "" })
    const probed = probe(path)
    if (probed !== undefined) {
      const report = JSON.parse(probed.text)
      expect(report.streams).toEqual([
        expect.objectContaining({ codec_name: "opus", sample_rate: "48000", channels: 1 }),
      ])
    }
    const decoded = say("ffmpeg", ["-v", "error", "-i", path, "-f", "null", "-"])
    if (decoded !== undefined) expect(decoded).toEqual({ status: 0, text: "" })
  })

  it("see that an aborted stream has no end", () => {
    const encoder = makeOggOpusEncoder()
    const parts = [oggOpusHeaders(), ...encoder.push(chirp(48_000, 24_000))]
    encoder.close()
    const path = file("aborted.opus", parts)
    const info = say("opusinfo", [path])
    if (info !== undefined) expect(info.text).toMatch(/EOS not set/)
    expect(parseOgg(new Uint8Array(Buffer.concat(parts))).pages.some((page) => page.endOfStream)).toBe(false)
  })

  it.each(LENGTHS)("read %i samples of MP3 as 128 kbit/s constant", async (samples) => {
    const encoder = await (await loadMp3())(24_000)
    encoder.push(chirp(samples, 24_000))
    const parts = encoder.finish()
    expect(mp3Frames(Buffer.concat(parts)).every((frame) => frame.kbps === 128)).toBe(true)
    const path = file(`${samples}.mp3`, parts)
    const probed = probe(path)
    if (probed !== undefined) {
      const report = JSON.parse(probed.text)
      expect(report.streams).toEqual([
        expect.objectContaining({ codec_name: "mp3", sample_rate: "24000", channels: 1, bit_rate: "128000" }),
      ])
    }
    const decoded = say("ffmpeg", ["-v", "error", "-i", path, "-f", "null", "-"])
    if (decoded !== undefined) expect(decoded).toEqual({ status: 0, text: "" })
    const pcm = join(folder, `${samples}.mp3.pcm`)
    const played = say("ffmpeg", ["-v", "error", "-i", path, "-f", "s16le", pcm])
    // Under 100 samples this FFmpeg does not trim what it decodes in two packets.
    if (played !== undefined && samples > 100) expect(statSync(pcm).size / 2).toBe(samples)
  })

  it.each(LENGTHS)("read %i samples of WAV to the sample", (samples) => {
    const path = file(`${samples}.wav`, [wavHeader(samples, 24_000), s16ToBytes(chirp(samples, 24_000))])
    const probed = probe(path)
    if (probed === undefined) return
    const report = JSON.parse(probed.text)
    expect(report.streams).toEqual([
      expect.objectContaining({
        codec_name: "pcm_s16le",
        sample_rate: "24000",
        channels: 1,
        bit_rate: "384000",
      }),
    ])
    expect(Math.round(Number(report.format.duration) * 24_000)).toBe(samples)
  })
})

// Both decoders give the same samples and the same refusals for the same file.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeDecoder } from "#audio/Decoder.ts"
import { binding } from "#audio/DecoderProcess.ts"
import { avTargets, type WavDepth, wavBytes, writeWithAv } from "../support/audio/AudioFiles.ts"
import { boastingFragments, boastingTables } from "../support/audio/HostileMp4.ts"
import { videoWithoutSound } from "../support/audio/VideoFile.ts"
import { needs } from "../support/groups/Needs.ts"
import { decodeAll, ffmpeg, fileOf, fresh, speech } from "./DecoderHarness.ts"

/** Two versions of FFmpeg round differently in codecs that compute with floats (measured: 1.2e-6 for AAC). */
const mostDifference = 1e-5
/** A block of AAC at 48 kHz, as samples at 16 kHz: FFmpeg before version 8 does not cut the padding at the end of an MP4 file. */
const blockOfAac = Math.ceil(1024 / 3)

describe("the package node-av and the ffmpeg program", needs("ffmpeg"), () => {
  const both = <A, E>(
    use: (decoder: Effect.Success<ReturnType<typeof makeDecoder>>) => Effect.Effect<A, E>,
  ) =>
    Effect.forEach([binding, ffmpeg ?? binding], (program) =>
      Effect.scoped(Effect.flatMap(makeDecoder({ program: Effect.succeed(program) }), use)),
    )

  it.live("give the same samples", () =>
    Effect.gen(function* () {
      const kinds = Object.entries(avTargets).map(([name, target]) => {
        const path = fresh()
        writeWithAv(path, speech, 48_000, target)
        return [name, path] as const
      })
      const depths: ReadonlyArray<WavDepth> = ["8", "16", "24", "32", "32f", "64", "8a", "8m"]
      const stereo = Buffer.from(wavBytes(speech, 48_000, "16"))
      stereo.writeUInt16LE(2, 22)
      stereo.writeUInt16LE(4, 32)
      const files = [
        ...kinds,
        ...depths.map((depth) => [`wav ${depth}`, fileOf(wavBytes(speech, 48_000, depth))] as const),
        ["stereo", fileOf(stereo)] as const,
        [
          "half",
          fileOf(readFileSync(kinds.find(([name]) => name === "mp3")![1]).subarray(0, 20_000)),
        ] as const,
      ]
      const decoded = yield* both((decoder) => Effect.forEach(files, ([, path]) => decodeAll(decoder, path)))
      const [theirs = [], ours = []] = decoded
      for (const [nth, [name]] of files.entries()) {
        const [expected, samples] = [theirs[nth]!.samples, ours[nth]!.samples]
        const more = samples.length - expected.length
        expect([name, more >= 0 && more <= (name === "m4a" ? blockOfAac : 0)]).toEqual([name, true])
        let worst = 0
        for (let i = 0; i < expected.length; i++)
          worst = Math.max(worst, Math.abs(samples[i]! - expected[i]!))
        expect([name, worst <= mostDifference, worst]).toEqual([name, true, worst])
        const { codec, ...facts } = theirs[nth]!.info
        expect(ours[nth]!.info).toEqual({ ...facts, codec: codec === "mp3float" ? "mp3" : codec })
      }
    }),
  )

  it.live("refuse with the same sentence", () =>
    Effect.gen(function* () {
      const wav = Buffer.from(wavBytes(speech.slice(0, 4800), 48_000, "16"))
      const changed = (offset: number, value: number, bytes: 2 | 4) => {
        const copy = Buffer.from(wav)
        copy.writeUIntLE(value, offset, bytes)
        return copy
      }
      const video = fresh()
      videoWithoutSound(video)
      const files: ReadonlyArray<readonly [string, string]> = [
        ["empty", fileOf("")],
        ["text", fileOf("This is a transcript, not audio. ".repeat(100))],
        ["playlist", fileOf("#EXTM3U\n#EXTINF:1,\nfile:///etc/hosts\n")],
        ["a video without sound", video],
        ["no samples", fileOf(wav.subarray(0, 44))],
        ["rate 1", fileOf(changed(24, 1, 4))],
        ["rate 3999", fileOf(changed(24, 3999, 4))],
        ["GSM in WAV", fileOf(changed(20, 0x31, 2))],
        ["40 channels", fileOf(changed(22, 40, 2))],
        ["only an MP4 head", fileOf(Buffer.from("\0\0\0\x18ftypM4A \0\0\0\0M4A isom", "latin1"))],
        ["tables of millions", fileOf(boastingTables(30_000_000, 3))],
        ["fragments of millions", fileOf(boastingFragments(1_500_000, 8))],
        ["too long", fileOf(wavBytes(new Int16Array(4 * 8_000), 8_000, "16"))],
      ]
      const [theirs, ours] = yield* both((decoder) =>
        Effect.forEach(files, ([name, path]) =>
          Effect.map(
            Effect.flip(decodeAll(decoder, path, { maxSeconds: 3, maxCpuMs: 60_000 })),
            ({ detail, reason }) => [name, reason, detail],
          ),
        ),
      )
      expect(ours).toEqual(theirs)
    }),
  )
})

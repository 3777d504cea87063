// What is no audio, damaged or a bomb: each decoder refuses it with a reason and lives on, and both refuse with the same sentence.
// `once` leaves tests of the ffmpeg program to test:long: support/groups/Runs.ts.
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AudioRejected } from "#audio/AudioErrors.ts"
import { makeDecoder } from "#audio/Decoder.ts"
import { avTargets, wavBytes, writeWav, writeWithAv } from "../support/audio/AudioFiles.ts"
import { boastingFragments, boastingTables } from "../support/audio/HostileMp4.ts"
import { videoWithoutSound } from "../support/audio/VideoFile.ts"
import { needs } from "../support/groups/Needs.ts"
import { reason } from "../support/process/Reason.ts"
import { byBoth, decodeAll, eachDecoder, fileOf, folder, fresh, seconds, speech } from "./DecoderHarness.ts"

eachDecoder("the decoder", ({ lasting, once, patience, watched, withDecoder }) => {
  const withLasting = lasting()

  it.live(
    "refuses what is not audio, saying what it is not",
    () =>
      withLasting((decoder) =>
        Effect.gen(function* () {
          const wav = Buffer.from(wavBytes(speech.slice(0, 4800), 48_000, "16"))
          const withRate = (rateHz: number) => {
            const bytes = Buffer.from(wav)
            bytes.writeUInt32LE(rateHz, 24)
            return bytes
          }
          const withFormat = (format: number) => {
            const bytes = Buffer.from(wav)
            bytes.writeUInt16LE(format, 20)
            return bytes
          }
          const withChannels = (channels: number) => {
            const bytes = Buffer.from(wav)
            bytes.writeUInt16LE(channels, 22)
            return bytes
          }
          const playlist = "#EXTM3U\n#EXTINF:1,\nfile:///etc/hosts\n"
          const cases: ReadonlyArray<
            readonly [string, Uint8Array | string, ReadonlyArray<AudioRejected["reason"]>]
          > = [
            ["empty", "", ["NotAudio"]],
            ["1 byte", "R", ["NotAudio"]],
            ["text", "This is a transcript, not audio. ".repeat(100), ["NotAudio"]],
            ["HTML", "<!doctype html><html><body>404</body></html>", ["NotAudio"]],
            ["playlist", playlist, ["NotAudio"]],
            ["ffconcat", "ffconcat version 1.0\nfile '/etc/hosts'\n", ["NotAudio"]],
            ["zeros", new Uint8Array(100_000), ["NotAudio"]],
            ["PNG", Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), ["NotAudio"]],
            ["RIFF but not WAVE", Buffer.from("RIFF\x10\0\0\0AVI LIST"), ["NotAudio"]],
            ["only a RIFF head", wav.subarray(0, 12), ["NotAudio", "NoAudioTrack", "Empty"]],
            ["no samples", wav.subarray(0, 44), ["Empty"]],
            [
              "only an Ogg head",
              Buffer.from("OggS".padEnd(100, "\0")),
              ["NotAudio", "NoAudioTrack", "Empty"],
            ],
            [
              "only a FLAC head",
              Buffer.from("fLaC".padEnd(100, "\0")),
              ["NotAudio", "NoAudioTrack", "UnsupportedLayout", "Empty"],
            ],
            [
              "only an MP4 head",
              Buffer.from("\0\0\0\x18ftypM4A \0\0\0\0M4A isom", "latin1"),
              ["NotAudio", "NoAudioTrack"],
            ],
            [
              "only an EBML head",
              Buffer.from("1a45dfa39f4286810142f7810142f2810442f381", "hex"),
              ["NotAudio", "NoAudioTrack"],
            ],
            ["rate 0", withRate(0), ["NotAudio", "UnsupportedLayout"]],
            ["rate 1", withRate(1), ["UnsupportedLayout"]],
            ["rate 3999", withRate(3999), ["UnsupportedLayout"]],
            ["rate 2^31", withRate(0x7fff_ffff), ["NotAudio", "UnsupportedLayout"]],
            ["0 channels", withChannels(0), ["NotAudio", "NoAudioTrack", "UnsupportedLayout", "Empty"]],
            [
              "65535 channels",
              withChannels(65_535),
              ["NotAudio", "NoAudioTrack", "UnsupportedLayout", "Empty"],
            ],
            ["GSM in WAV", withFormat(0x31), ["UnsupportedCodec"]],
          ]
          for (const [name, bytes, allowed] of cases) {
            const outcome = yield* Effect.flip(decodeAll(decoder, fileOf(bytes)))
            expect(outcome._tag, name).toBe("AudioRejected")
            expect(allowed, name).toContain(outcome.reason)
            expect(outcome.detail, name).toMatch(/^[A-Z0-9].{10,}/)
            expect(outcome.detail, name).not.toContain(folder)
          }
        }),
      ),
    once,
  )

  it.live("believes the bytes and not the name or the header's sizes", () =>
    withLasting((decoder) =>
      Effect.gen(function* () {
        const named = join(folder, "speech.mp3")
        writeWav(named, speech, 48_000)
        expect((yield* decodeAll(decoder, named)).info.container).toBe("wav")
        for (const lie of [0, 1, 0x7fff_ffff, 0xffff_ffff]) {
          const bytes = Buffer.from(wavBytes(speech, 48_000, "16"))
          bytes.writeUInt32LE(lie, 40)
          const outcome = yield* Effect.match(decodeAll(decoder, fileOf(bytes)), {
            onFailure: (error) => error._tag,
            onSuccess: ({ samples }) => samples.length / 16_000 <= seconds + 0.01,
          })
          expect([true, "AudioRejected"]).toContain(outcome)
        }
      }),
    ),
  )

  it.live(
    "answers many mutated files with samples or a reason, and survives them all",
    () => {
      const { started, startProcess } = watched()
      return withDecoder(
        (decoder) =>
          Effect.gen(function* () {
            const short = speech.slice(0, 24_000)
            let seed = 12_345
            // A fixed sequence (Lehmer), so that a failure can be reproduced.
            const random = (below: number) => {
              seed = (seed * 48_271) % 0x7fff_ffff
              return seed % below
            }
            const outcomes = new Map<string, number>()
            for (const target of [...Object.values(avTargets), undefined]) {
              const path = fresh()
              if (target === undefined) writeWav(path, short, 48_000)
              else writeWithAv(path, short, 48_000, target)
              const whole = readFileSync(path)
              for (let i = 0; i < 50 * patience; i++) {
                const mutant = Buffer.from(whole)
                for (let edits = 1 + random(8); edits > 0; edits--) {
                  // Half of the edits are in the headers, which hold sizes and counts.
                  mutant[random(random(2) === 0 ? Math.min(200, mutant.length) : mutant.length)] = random(256)
                }
                const outcome = yield* Effect.match(
                  decodeAll(decoder, fileOf(mutant), { maxSeconds: 3600, maxCpuMs: 5000 }),
                  {
                    onFailure: (error) => `${error._tag} ${error.reason}`,
                    onSuccess: () => "samples",
                  },
                )
                outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
              }
            }
            const bad = [...outcomes.keys()].filter((key) => key.startsWith("DecoderFailed"))
            expect(bad).toEqual([])
            expect(outcomes.get("samples") ?? 0).toBeGreaterThan(150 * patience)
            expect(started.length).toBeLessThanOrEqual(3)
          }),
        { startProcess },
      )
    },
    once,
  )

  it.live("stops a bomb at its budgets: seconds, or CPU time", () =>
    withLasting((decoder) =>
      Effect.gen(function* () {
        const path = fresh()
        writeWithAv(path, new Int16Array(150 * 8000), 8000, avTargets.flac)
        // 4.8 MB of samples at 16 kHz.
        expect(statSync(path).size).toBeLessThan(40_000)
        const tooLong = decodeAll(decoder, path, { maxSeconds: 60, maxCpuMs: 60_000 })
        expect(yield* reason(tooLong)).toBe("TooLong")
        const tooCostly = decodeAll(decoder, path, { maxSeconds: 1e6, maxCpuMs: 1 })
        expect(yield* reason(tooCostly)).toBe("TooCostly")
        const whole = yield* decodeAll(decoder, path, { maxSeconds: 150, maxCpuMs: 60_000 })
        expect(whole.samples.length).toBe(150 * 16_000)
      }),
    ),
  )
})

describe("the package node-av and the ffmpeg program", needs("ffmpeg"), () => {
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
      const [theirs, ours] = yield* byBoth((program) =>
        Effect.flatMap(makeDecoder({ program: Effect.succeed(program) }), (decoder) =>
          Effect.forEach(files, ([name, path]) =>
            Effect.map(
              Effect.flip(decodeAll(decoder, path, { maxSeconds: 3, maxCpuMs: 60_000 })),
              ({ detail, reason }) => [name, reason, detail],
            ),
          ),
        ).pipe(Effect.scoped),
      )
      expect(ours).toEqual(theirs)
    }),
  )
})

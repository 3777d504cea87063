// Every accepted kind of file, whole, cut and damaged: each decoder gives its sound, and both give the same samples.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type DecodeError, makeDecoder } from "#audio/Decoder.ts"
import type { DecoderProgram } from "#audio/decoder/DecoderWire.ts"
import { avTargets, chirp, power, type WavDepth, wavBytes, writeWithAv } from "../support/audio/AudioFiles.ts"
import { needs } from "../support/groups/Needs.ts"
import { reason } from "../support/process/Reason.ts"
import { byBoth, decodeAll, eachDecoder, fileOf, fresh, seconds, speech } from "./DecoderHarness.ts"

/** Two versions of FFmpeg round differently in codecs that compute with floats (measured: 1.2e-6 for AAC). */
const mostDifference = 1e-5
/** A block of AAC at 48 kHz, as samples at 16 kHz: FFmpeg before version 8 does not cut the padding at the end of an MP4 file. */
const blockOfAac = Math.ceil(1024 / 3)

const depths: ReadonlyArray<WavDepth> = ["8", "16", "24", "32", "32f", "64", "8a", "8m"]

/** The speech in every kind of file, by name. */
const kinds: ReadonlyMap<string, string> = new Map([
  ...Object.entries(avTargets).map(([name, target]) => {
    const path = fresh()
    writeWithAv(path, speech, 48_000, target)
    return [name, path] as const
  }),
  ...depths.map((depth) => [`wav ${depth}`, fileOf(wavBytes(speech, 48_000, depth))] as const),
])

const written = (name: "mp3" | "flac"): Buffer => readFileSync(kinds.get(name)!)

type Decoded = Effect.Success<ReturnType<typeof decodeAll>>

const decodedBy = new Map<DecoderProgram["kind"], ReadonlyMap<string, Decoded>>()

/** What a decoder makes of each kind; decoded once. */
const decodedKinds = (program: DecoderProgram): Effect.Effect<ReadonlyMap<string, Decoded>, DecodeError> =>
  Effect.suspend(() => {
    const known = decodedBy.get(program.kind)
    if (known !== undefined) return Effect.succeed(known)
    const all = Effect.flatMap(makeDecoder({ program: Effect.succeed(program) }), (decoder) =>
      Effect.forEach(kinds, ([name, path]) =>
        Effect.map(decodeAll(decoder, path), (decoded) => [name, decoded] as const),
      ),
    )
    return Effect.map(Effect.scoped(all), (entries) => {
      const made = new Map(entries)
      decodedBy.set(program.kind, made)
      return made
    })
  })

eachDecoder("the decoder", ({ lasting, program }) => {
  const withDecoder = lasting()

  it.live("decodes every accepted kind of file to the same sound", () =>
    Effect.gen(function* () {
      const all = yield* decodedKinds(program)
      const reference = all.get("wav 16")!
      expect(reference.info).toEqual({
        container: "wav",
        codec: "pcm_s16le",
        sourceRateHz: 48_000,
        channels: 1,
      })
      for (const [name, { samples, totals }] of all) {
        // Codecs that pad record it in the file, and the decoder removes it: 20 ms at most (ffmpeg leaves one block of AAC).
        expect(Math.abs(samples.length / 16_000 - seconds), name).toBeLessThan(0.02)
        // LAME lowers everything to 0.95, so to 0.9025 of the power.
        expect(power(samples) / power(reference.samples), name).toBeGreaterThan(0.89)
        expect(power(samples) / power(reference.samples), name).toBeLessThan(1.05)
        expect(totals, name).toMatchObject({ samples: samples.length, damages: 0 })
      }
    }),
  )

  it.live("keeps the level and the time of a tone through a change of rate", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        for (const rateHz of [8000, 11_025, 44_100, 96_000]) {
          const tone = Int16Array.from(
            { length: rateHz },
            (_, i) => 16_384 * Math.sin((2 * Math.PI * 440 * i) / rateHz),
          )
          const { samples } = yield* decodeAll(decoder, fileOf(wavBytes(tone, rateHz, "16")))
          expect(Math.abs(samples.length - 16_000)).toBeLessThanOrEqual(1)
          let worst = 0
          for (let i = 500; i < 15_500; i++) {
            worst = Math.max(worst, Math.abs(samples[i]! - 0.5 * Math.sin((2 * Math.PI * 440 * i) / 16_000)))
          }
          expect(worst, `${rateHz} Hz`).toBeLessThan(0.005)
        }
      }),
    ),
  )

  it.live("finds MP3 and FLAC behind tags and padding", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        // An ID3v2.3 tag with a picture's worth of bytes, its size in seven-bit pieces.
        const tag = (size: number) =>
          Buffer.concat([
            Buffer.from([
              0x49,
              0x44,
              0x33,
              3,
              0,
              0,
              size >> 21,
              (size >> 14) & 127,
              (size >> 7) & 127,
              size & 127,
            ]),
            Buffer.alloc(size),
          ])
        const mp3 = written("mp3")
        for (const bytes of [
          Buffer.concat([tag(300_000), mp3]),
          Buffer.concat([tag(10), tag(5000), mp3]),
          Buffer.concat([Buffer.alloc(3000), mp3.subarray(mp3.indexOf(Buffer.from([0xff, 0xfb])))]),
          Buffer.concat([tag(2000), written("flac")]),
        ]) {
          const { samples } = yield* decodeAll(decoder, fileOf(bytes))
          expect(Math.abs(samples.length / 16_000 - seconds)).toBeLessThan(0.1)
        }
        // A tag whose stated size exceeds the file, and a file of tags only.
        expect(
          yield* reason(decodeAll(decoder, fileOf(Buffer.concat([tag(300_000).subarray(0, 100), mp3])))),
        ).toBe("NotAudio")
        expect(yield* reason(decodeAll(decoder, fileOf(tag(5000))))).toBe("NotAudio")
      }),
    ),
  )

  it.live("gives what is there of a file that was cut or damaged", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        // Several pages of Ogg: with a single page, every hole would be in it.
        const long = chirp(12 * 48_000, 48_000)
        for (const name of ["mp3", "ogg", "flac", "webm"] as const) {
          const path = fresh()
          writeWithAv(path, long, 48_000, avTargets[name])
          const whole = readFileSync(path)
          const half = yield* decodeAll(decoder, fileOf(whole.subarray(0, whole.length / 2)))
          expect(half.samples.length / 16_000, name).toBeGreaterThan(12 * 0.25)
          expect(half.samples.length / 16_000, name).toBeLessThan(12 * 0.8)
          const holed = Buffer.from(whole)
          holed.fill(0x55, Math.floor(whole.length * 0.5), Math.floor(whole.length * 0.55))
          const rest = yield* decodeAll(decoder, fileOf(holed))
          expect(rest.samples.length / 16_000, name).toBeGreaterThan(12 * 0.6)
        }
      }),
    ),
  )
})

describe("the package node-av and the ffmpeg program", needs("ffmpeg"), () => {
  it.live("give the same samples", () =>
    Effect.gen(function* () {
      const stereo = Buffer.from(wavBytes(speech, 48_000, "16"))
      stereo.writeUInt16LE(2, 22)
      stereo.writeUInt16LE(4, 32)
      const more = new Map([
        ["stereo", fileOf(stereo)],
        ["half", fileOf(written("mp3").subarray(0, 20_000))],
      ])
      const [theirs, ours] = yield* byBoth((program) =>
        Effect.gen(function* () {
          const decoder = yield* makeDecoder({ program: Effect.succeed(program) })
          const others = yield* Effect.forEach(more, ([name, path]) =>
            Effect.map(decodeAll(decoder, path), (decoded) => [name, decoded] as const),
          )
          return new Map([...(yield* decodedKinds(program)), ...others])
        }).pipe(Effect.scoped),
      )
      expect([...ours.keys()]).toEqual([...kinds.keys(), ...more.keys()])
      for (const [name, { info, samples: expected }] of theirs) {
        const { info: ownInfo, samples } = ours.get(name)!
        const longer = samples.length - expected.length
        expect([name, longer >= 0 && longer <= (name === "m4a" ? blockOfAac : 0)]).toEqual([name, true])
        let worst = 0
        for (let i = 0; i < expected.length; i++)
          worst = Math.max(worst, Math.abs(samples[i]! - expected[i]!))
        expect([name, worst <= mostDifference, worst]).toEqual([name, true, worst])
        const { codec, ...facts } = info
        expect(ownInfo).toEqual({ ...facts, codec: codec === "mp3float" ? "mp3" : codec })
      }
    }),
  )
})

// Untrusted files through the decoder process: every accepted kind, hostile files, and crashes of the process.
import { type ChildProcess, fork } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { decodeClip } from "#audio/DecodeClip.ts"
import type { AudioRejected, DecoderFailed } from "../../src/audio/AudioErrors.ts"
import { DEFAULT_LIMITS, Decoder, type DecoderOptions, makeDecoder } from "../../src/audio/Decoder.ts"
import { type DecoderEvent, DecoderProcess } from "../../src/audio/DecoderProcess.ts"
import { CHUNK_SAMPLES, type DecodeRequest, WINDOW_CHUNKS } from "../../src/audio/decoder/DecoderWire.ts"
import {
  AV_TARGETS,
  chirp,
  power,
  type WavDepth,
  wavBytes,
  writeWav,
  writeWithAv,
} from "../support/audio/AudioFiles.ts"
import { reason } from "../support/process/Reason.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-decoder-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
// No extension, and none that could help: the kind of a file is in its bytes.
let files = 0
const fresh = () => join(folder, `upload-${files++}`)
const fileOf = (bytes: Uint8Array | string): string => {
  const path = fresh()
  writeFileSync(path, bytes)
  return path
}

/** Counts what arrives, so that a test sees how far a process runs ahead. */
class WatchedProcess extends DecoderProcess {
  received = 0
  override decode(request: DecodeRequest, listener: (event: DecoderEvent) => void): void {
    super.decode(request, (event) => {
      if (event.t === "chunk") this.received++
      listener(event)
    })
  }
}
const watched = () => {
  const started: Array<WatchedProcess> = []
  const startProcess = (onDeath: () => void) => {
    const process = new WatchedProcess(onDeath)
    started.push(process)
    return process
  }
  return { started, startProcess }
}
/** Replaces the decoder program by one that misbehaves in the given way. */
const impostor = (program: string) => {
  const path = join(folder, `impostor-${files++}.cjs`)
  writeFileSync(path, program)
  const spawn = (): ChildProcess => fork(path, [], { execArgv: [], env: {}, serialization: "advanced" })
  return (onDeath: () => void) => new DecoderProcess(onDeath, spawn)
}

const withDecoder = <A, E>(
  body: (decoder: Decoder["Service"]) => Effect.Effect<A, E, Decoder>,
  options: DecoderOptions = {},
): Effect.Effect<A, E> =>
  Effect.scoped(
    Effect.flatMap(makeDecoder(options), (decoder) => Effect.provideService(body(decoder), Decoder, decoder)),
  )

const decodeAll = (decoder: Decoder["Service"], path: string, limits = DEFAULT_LIMITS) =>
  Effect.scoped(
    Effect.gen(function* () {
      const decoded = yield* decoder.decode(path, { limits })
      const chunks = yield* Stream.runCollect(decoded.stream)
      const samples = new Float32Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
      let at = 0
      for (const chunk of chunks) {
        samples.set(chunk, at)
        at += chunk.length
      }
      return { info: decoded.info, samples, totals: decoded.totals() }
    }),
  )

const SECONDS = 2.5
const speech = chirp(SECONDS * 48_000, 48_000)

describe("Decoder", () => {
  it.live("decodes every accepted kind of file to the same sound", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        const kinds: Array<readonly [string, string]> = []
        for (const [name, target] of Object.entries(AV_TARGETS)) {
          const path = fresh()
          writeWithAv(path, speech, 48_000, target)
          kinds.push([name, path])
        }
        for (const depth of ["8", "16", "24", "32", "32f", "64", "8a", "8m"] satisfies Array<WavDepth>) {
          const path = fresh()
          writeWav(path, speech, 48_000, depth)
          kinds.push([`wav ${depth}`, path])
        }
        const reference = yield* decodeAll(decoder, kinds.find(([name]) => name === "wav 16")![1])
        expect(reference.info).toEqual({
          container: "wav",
          codec: "pcm_s16le",
          sourceRateHz: 48_000,
          channels: 1,
        })
        for (const [name, path] of kinds) {
          const { samples, totals } = yield* decodeAll(decoder, path)
          // Codecs that pad record it in the file, and the decoder removes it: 20 ms at most.
          expect(Math.abs(samples.length / 16_000 - SECONDS), name).toBeLessThan(0.02)
          // LAME lowers everything to 0.95, so to 0.9025 of the power.
          expect(power(samples) / power(reference.samples), name).toBeGreaterThan(0.89)
          expect(power(samples) / power(reference.samples), name).toBeLessThan(1.05)
          expect(totals, name).toMatchObject({ samples: samples.length, damages: 0 })
        }
      }),
    ),
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

  it.live("refuses what is not audio, saying what it is not", () =>
    withDecoder((decoder) =>
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
          ["only an Ogg head", Buffer.from("OggS".padEnd(100, "\0")), ["NotAudio", "NoAudioTrack", "Empty"]],
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
  )

  it.live("believes the bytes and not the name or the header's sizes", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        const named = join(folder, "speech.mp3")
        writeWav(named, speech, 48_000)
        expect((yield* decodeAll(decoder, named)).info.container).toBe("wav")
        for (const lie of [0, 1, 0x7fff_ffff, 0xffff_ffff]) {
          const bytes = Buffer.from(wavBytes(speech, 48_000, "16"))
          bytes.writeUInt32LE(lie, 40)
          const outcome = yield* Effect.match(decodeAll(decoder, fileOf(bytes)), {
            onFailure: (error) => error._tag,
            onSuccess: ({ samples }) => samples.length / 16_000 <= SECONDS + 0.01,
          })
          expect([true, "AudioRejected"]).toContain(outcome)
        }
      }),
    ),
  )

  it.live("finds MP3 and FLAC behind tags and padding", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        const written = (name: "mp3" | "flac") => {
          const path = fresh()
          writeWithAv(path, speech, 48_000, AV_TARGETS[name])
          return readFileSync(path)
        }
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
          expect(Math.abs(samples.length / 16_000 - SECONDS)).toBeLessThan(0.1)
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
          writeWithAv(path, long, 48_000, AV_TARGETS[name])
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

  it.live("answers hundreds of mutated files with samples or a reason, and survives them all", () => {
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
          for (const target of [...Object.values(AV_TARGETS), undefined]) {
            const path = fresh()
            if (target === undefined) writeWav(path, short, 48_000)
            else writeWithAv(path, short, 48_000, target)
            const whole = readFileSync(path)
            for (let i = 0; i < 50; i++) {
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
          expect(outcomes.get("samples") ?? 0).toBeGreaterThan(150)
          expect(started.length).toBeLessThanOrEqual(3)
        }),
      { startProcess },
    )
  })

  it.live("stops a bomb at its budgets: seconds, or CPU time", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        const path = fresh()
        writeWithAv(path, new Int16Array(600 * 8000), 8000, AV_TARGETS.flac)
        // 19 MB of samples at 16 kHz.
        expect(statSync(path).size).toBeLessThan(150_000)
        const tooLong = decodeAll(decoder, path, { maxSeconds: 60, maxCpuMs: 60_000 })
        expect(yield* reason(tooLong)).toBe("TooLong")
        const tooCostly = decodeAll(decoder, path, { maxSeconds: 1e6, maxCpuMs: 1 })
        expect(yield* reason(tooCostly)).toBe("TooCostly")
        const whole = yield* decodeAll(decoder, path, { maxSeconds: 600, maxCpuMs: 60_000 })
        expect(whole.samples.length).toBe(600 * 16_000)
      }),
    ),
  )

  it.live("never runs further ahead of its reader than its window", () => {
    const { started, startProcess } = watched()
    return withDecoder(
      (decoder) =>
        Effect.scoped(
          Effect.gen(function* () {
            const path = fresh()
            writeWithAv(path, new Int16Array(120 * 8000), 8000, AV_TARGETS.flac)
            const decoded = yield* decoder.decode(path)
            let pulled = 0
            let ahead = 0
            for (;;) {
              // Time for the process to run ahead, if it could.
              if (pulled % 8 === 0) yield* Effect.sleep(20)
              ahead = Math.max(ahead, started[0]!.received - pulled)
              const samples = yield* decoded.pull
              if (samples === undefined) break
              pulled++
              expect(samples.length).toBeLessThanOrEqual(CHUNK_SAMPLES)
            }
            expect(pulled).toBe(Math.ceil((120 * 16_000) / CHUNK_SAMPLES))
            // The first chunk is taken by `decode` itself and handed out by the first pull.
            expect(ahead).toBeLessThanOrEqual(WINDOW_CHUNKS + 1)
          }),
        ),
      { startProcess },
    )
  })

  it.live("fails only the request whose process is killed; the next one works", () => {
    const { started, startProcess } = watched()
    return withDecoder(
      (decoder) =>
        Effect.gen(function* () {
          const path = fresh()
          writeWithAv(path, new Int16Array(120 * 8000), 8000, AV_TARGETS.flac)
          const outcome = yield* Effect.scoped(
            Effect.gen(function* () {
              const first = yield* decoder.decode(path)
              const second = yield* decoder.decode(path)
              yield* first.pull
              started[0]!.kill()
              const failure = yield* Effect.flip(Stream.runDrain(first.stream))
              // Another process is not disturbed.
              yield* Stream.runDrain(second.stream)
              expect(second.totals()?.samples).toBe(120 * 16_000)
              return failure
            }),
          )
          expect(outcome).toMatchObject({ _tag: "DecoderFailed", reason: "Died" })
          expect(outcome.detail).toContain("SIGKILL")
          expect((yield* decodeAll(decoder, path)).samples.length).toBe(120 * 16_000)
        }),
      { startProcess },
    )
  })

  it.live("reuses its process after an end and after a refusal, but not after an interruption", () => {
    const { started, startProcess } = watched()
    return withDecoder(
      (decoder) =>
        Effect.gen(function* () {
          const path = fresh()
          writeWav(path, speech, 48_000)
          yield* decodeAll(decoder, path)
          yield* Effect.flip(decodeAll(decoder, fileOf("no audio")))
          yield* decodeAll(decoder, path)
          expect(started.length).toBe(1)
          const long = fresh()
          writeWithAv(long, new Int16Array(120 * 8000), 8000, AV_TARGETS.flac)
          const before = started[0]!.received
          const fiber = yield* Effect.forkChild(
            Effect.scoped(Effect.andThen(decoder.decode(long), Effect.never)),
            { startImmediately: true },
          )
          while (started[0]!.received === before) yield* Effect.sleep(1)
          yield* Fiber.interrupt(fiber)
          yield* decodeAll(decoder, path)
          expect(started.length).toBe(2)
        }),
      { startProcess },
    )
  })

  it.live("bounds its processes and its queue", () =>
    withDecoder(
      (decoder) =>
        Effect.gen(function* () {
          const path = fresh()
          writeWav(path, speech, 48_000)
          const waiting = yield* Effect.scoped(
            Effect.gen(function* () {
              yield* decoder.decode(path)
              const fiber = yield* Effect.forkDetach(decodeAll(decoder, path), { startImmediately: true })
              expect(yield* reason(decodeAll(decoder, path))).toBe("Busy")
              return fiber
            }),
          )
          // It starts when the first is done; the queue then has a free place.
          expect((yield* Fiber.join(waiting)).samples.length).toBe(SECONDS * 16_000)
          yield* decodeAll(decoder, path)
        }),
      { maxProcesses: 1, maxWaiting: 1 },
    ),
  )

  it.effect("kills a silent decoder at its deadline, and an idle one after its time", () => {
    const deaths: Array<string> = []
    const silent = impostor("process.on('message', () => {})")
    return withDecoder(
      (decoder) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Effect.flip(decodeAll(decoder, fileOf("unread"))), {
            startImmediately: true,
          })
          yield* TestClock.adjust(5000)
          expect((yield* Fiber.join(fiber)).reason).toBe("Hung")
          yield* decoder.warm
          yield* decoder.warm
          expect(deaths.filter((each) => each === "start").length).toBe(2)
          yield* TestClock.adjust(60_000)
          while (deaths.filter((each) => each === "end").length < 2) {
            yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
          }
        }),
      {
        hangMs: 5000,
        idleMs: 60_000,
        startProcess: (onDeath) => {
          deaths.push("start")
          return silent(() => {
            deaths.push("end")
            onDeath()
          })
        },
      },
    )
  })

  it.live("kills a process that sends more than its window", () => {
    const flood = impostor(`
      process.on("message", () => {
        process.send({ t: "info", info: { container: "wav", codec: "x", sourceRateHz: 8000, channels: 1 } })
        setInterval(() => process.send({ t: "chunk", samples: new Float32Array(10) }), 1)
      })`)
    return withDecoder(
      (decoder) =>
        Effect.gen(function* () {
          const outcome = yield* Effect.scoped(
            Effect.gen(function* () {
              const decoded = yield* decoder.decode(fileOf("unread"))
              let last: DecoderFailed | AudioRejected | undefined
              for (let pulled = 0; last === undefined; pulled++) {
                yield* Effect.sleep(50)
                last = yield* Effect.match(decoded.pull, {
                  onFailure: (error) => error,
                  onSuccess: () => undefined,
                })
                expect(pulled).toBeLessThan(50)
              }
              return last
            }),
          )
          expect(outcome.reason).toBe("Died")
        }),
      { startProcess: flood },
    )
  })

  it.live("kills its processes when it is stopped", () => {
    let ended = 0
    return Effect.gen(function* () {
      yield* withDecoder((decoder) => decoder.warm, {
        startProcess: (onDeath) =>
          new DecoderProcess(() => {
            ended++
            onDeath()
          }),
      })
      while (ended === 0) yield* Effect.sleep(5)
    })
  })
})

describe("decodeClip", () => {
  it.live("gives a clip as 16-bit samples, from bytes or from a file, and leaves nothing behind", () =>
    withDecoder(() =>
      Effect.gen(function* () {
        const spoolDir = mkdtempSync(join(folder, "spool-"))
        const bytes = wavBytes(chirp(24_000, 24_000), 24_000, "16")
        const options = { maxSeconds: 30, rateHz: 24_000, spoolDir }
        const clip = yield* decodeClip(bytes, options)
        expect(clip).toEqual(chirp(24_000, 24_000))
        expect(yield* decodeClip(fileOf(bytes), options)).toEqual(clip)
        expect(yield* reason(decodeClip(bytes, { ...options, maxSeconds: 0.5 }))).toBe("TooLong")
        expect(yield* reason(decodeClip(Buffer.from("no audio"), options))).toBe("NotAudio")
        expect(
          yield* reason(decodeClip(bytes, { ...options, spoolDir: join(fileOf(bytes), "below a file") })),
        ).toBe("Spool")
        expect(readdirSync(spoolDir)).toEqual([])
      }),
    ),
  )
})

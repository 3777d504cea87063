// Encoders on codec threads, through the service: bytes, ends, aborts, crashes and bounds.
import { Worker } from "node:worker_threads"
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import fc from "fast-check"
import { CodecPool, type CodecPoolOptions, makeCodecPool } from "#audio/codecs/CodecPool.ts"
import type { FromCodec } from "#audio/codecs/CodecWire.ts"
import type { Encoder } from "#audio/codecs/Encoder.ts"
import { oggOpusHeaders } from "#audio/codecs/OggOpus.ts"
import { overrunSamples, windowSamples } from "#audio/codecs/ThreadEncoder.ts"
import type { AudioFormat } from "#domain/audio/Audio.ts"
import { chirp } from "../../support/audio/AudioFiles.ts"
import { mp3Frames } from "../../support/audio/Mp3Frames.ts"
import { decodeOggOpus, parseOgg } from "../../support/audio/OggPages.ts"
import { programFile } from "../../support/process/CompiledCode.ts"
import { reason } from "../../support/process/Reason.ts"

/** Threads that the test can end. */
const mortal = () => {
  const workers: Array<Worker> = []
  const spawn = () => {
    const worker = new Worker(programFile("src/audio/codecs/codecWorker"), {
      execArgv: ["--disable-warning=ExperimentalWarning"],
    })
    workers.push(worker)
    return worker
  }
  return { workers, spawn }
}
const withPool = <A, E>(
  body: (pool: CodecPool["Service"]) => Effect.Effect<A, E>,
  options: CodecPoolOptions = { threads: 1 },
) => Effect.scoped(Effect.flatMap(makeCodecPool(options), body))

/** A pool of one thread for the tests that leave it as it was. */
let lasting: CodecPool["Service"]
beforeAll(async () => {
  const scope = Scope.makeUnsafe()
  lasting = await Effect.runPromise(Scope.provide(makeCodecPool({ threads: 1 }), scope))
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
})
const withLasting = <A, E>(body: (pool: CodecPool["Service"]) => Effect.Effect<A, E>) =>
  Effect.suspend(() => body(lasting))

/** Opens, pushes in pieces (waiting on request) and finishes. */
const encodeWith = (
  pool: CodecPool["Service"],
  format: AudioFormat,
  samples: Int16Array,
  sizes: ReadonlyArray<number>,
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const parts: Array<Uint8Array> = []
      const encoder = yield* pool.open({ format, onBytes: (bytes) => parts.push(Uint8Array.from(bytes)) })
      for (let at = 0, i = 0; at < samples.length; i++) {
        const size = sizes[i % sizes.length]!
        if (!encoder.push(samples.subarray(at, at + size))) yield* encoder.ready
        at += size
      }
      const totals = yield* encoder.finish
      const bytes = new Uint8Array(Buffer.concat(parts))
      expect(totals).toEqual({ samples: samples.length, sizeBytes: bytes.length })
      return bytes
    }),
  )
describe("CodecPool", () => {
  it.live("gives the same bytes in every format however the samples are handed in", () =>
    withLasting((pool) =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.constantFrom<AudioFormat>("pcm", "wav", "mp3", "opus"),
            fc.integer({ min: 0, max: 8_000 }),
            fc.array(fc.integer({ min: 1, max: 4_000 }), { minLength: 1, maxLength: 5 }),
            async (format, n, sizes) => {
              const samples = chirp(n, 24_000)
              const whole = await Effect.runPromise(encodeWith(pool, format, samples, [Math.max(1, n)]))
              const pieces = await Effect.runPromise(encodeWith(pool, format, samples, sizes))
              expect(Buffer.compare(whole, pieces)).toBe(0)
            },
          ),
          { numRuns: 40 },
        ),
      ),
    ),
  )

  it.live("encodes each format as specified", () =>
    withLasting((pool) =>
      Effect.gen(function* () {
        const samples = chirp(48_000 + 7, 24_000)
        const pcm = yield* encodeWith(pool, "pcm", samples, [1000])
        expect(Buffer.compare(pcm, Buffer.from(samples.buffer))).toBe(0)

        const wav = Buffer.from(yield* encodeWith(pool, "wav", samples, [1000]))
        expect(wav.length).toBe(44 + pcm.length)
        expect(wav.readUInt32LE(4)).toBe(wav.length - 8)
        expect(wav.readUInt32LE(40)).toBe(pcm.length)
        expect(Buffer.compare(wav.subarray(44), pcm)).toBe(0)

        const frames = mp3Frames(yield* encodeWith(pool, "mp3", samples, [1000]))
        expect(new Set(frames.map((frame) => JSON.stringify(frame)))).toEqual(
          new Set([JSON.stringify({ kbps: 128, rateHz: 24_000, mono: true })]),
        )
        // 576 samples a frame; the encoder's delay and padding add between one and four frames.
        expect(frames.length * 576).toBeGreaterThan(samples.length)
        expect(frames.length * 576).toBeLessThan(samples.length + 4 * 576)

        const opus = yield* encodeWith(pool, "opus", samples, [1000])
        expect(Math.abs(decodeOggOpus(opus).length / 2 - samples.length)).toBeLessThanOrEqual(1)
      }),
    ),
  )

  it.live("hands out the Opus headers before `open` returns", () =>
    withLasting((pool) =>
      Effect.scoped(
        Effect.gen(function* () {
          const parts: Array<Uint8Array> = []
          yield* pool.open({ format: "opus", onBytes: (bytes) => parts.push(bytes) })
          expect(Buffer.concat(parts).equals(oggOpusHeaders())).toBe(true)
        }),
      ),
    ),
  )

  it.live("leaves no end mark and sends nothing more when the scope closes before the end", () =>
    withLasting((pool) =>
      Effect.gen(function* () {
        const parts: Array<Uint8Array> = []
        let encoder: Encoder | undefined
        yield* Effect.scoped(
          Effect.gen(function* () {
            encoder = yield* pool.open({ format: "opus", onBytes: (bytes) => parts.push(bytes) })
            encoder.push(chirp(48_000, 24_000))
            // Some of it must have come out before the scope closes.
            while (parts.length < 2) yield* Effect.sleep(1)
          }),
        )
        const atClose = parts.length
        // A whole other stream through the same thread: everything sent earlier has been processed by then.
        yield* encodeWith(pool, "opus", chirp(2400, 24_000), [2400])
        expect(parts.length).toBe(atClose)
        const { pages, restBytes } = parseOgg(new Uint8Array(Buffer.concat(parts)))
        expect(restBytes).toBe(0)
        expect(pages.length).toBeGreaterThan(2)
        expect(pages.some((page) => page.endOfStream)).toBe(false)
        expect(encoder?.push(chirp(10, 24_000))).toBe(false)
        expect(yield* reason(encoder!.finish)).toBe("Closed")
      }),
    ),
  )

  it.live("stops the work of an aborted encoder", () => {
    const { workers, spawn } = mortal()
    return withPool(
      (pool) =>
        Effect.gen(function* () {
          const slices: Array<number> = []
          workers[0]!.on("message", (message: FromCodec) => {
            if (message.t === "bytes") slices.push(message.id)
          })
          const ofFirst = () => slices.filter((id) => id === 0).length
          yield* Effect.scoped(
            Effect.gen(function* () {
              const encoder = yield* pool.open({ format: "opus", onBytes: () => {} })
              // About 1,600 slices, for which the thread needs eight seconds.
              encoder.push(new Int16Array(40 * windowSamples))
              while (ofFirst() === 0) yield* Effect.sleep(1)
            }),
          )
          yield* encodeWith(pool, "opus", chirp(2400, 24_000), [2400])
          const after = ofFirst()
          // This thread may be late with the abort, and the other one goes on until then.
          expect(after).toBeLessThan(1_500)
          yield* encodeWith(pool, "opus", chirp(2400, 24_000), [2400])
          expect(ofFirst()).toBe(after)
        }),
      { threads: 1, spawn },
    )
  })

  it.live("aborts when the user of an encoder is interrupted", () =>
    withLasting((pool) =>
      Effect.gen(function* () {
        const parts: Array<Uint8Array> = []
        const fiber = yield* Effect.forkChild(
          Effect.scoped(
            Effect.gen(function* () {
              const encoder = yield* pool.open({ format: "opus", onBytes: (bytes) => parts.push(bytes) })
              encoder.push(chirp(2400, 24_000))
              yield* encoder.failed
            }),
          ),
          { startImmediately: true },
        )
        yield* Fiber.interrupt(fiber)
        yield* encodeWith(pool, "opus", chirp(2400, 24_000), [2400])
        expect(parseOgg(new Uint8Array(Buffer.concat(parts))).pages.some((page) => page.endOfStream)).toBe(
          false,
        )
      }),
    ),
  )

  it.live("fails every open encoder when its thread ends, and replaces the thread", () => {
    const { workers, spawn } = mortal()
    return withPool(
      (pool) =>
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const all = yield* Effect.forEach(["opus", "mp3", "opus"] as const, (format) =>
                pool.open({ format, onBytes: () => {} }),
              )
              for (const encoder of all) encoder.push(chirp(2400, 24_000))
              const waits = yield* Effect.forEach(all, (encoder) =>
                Effect.forkChild(reason(encoder.failed), { startImmediately: true }),
              )
              yield* Effect.promise(() => workers[0]!.terminate())
              for (const wait of waits) expect(yield* Fiber.join(wait)).toBe("WorkerDied")
              for (const encoder of all) {
                expect(encoder.push(chirp(10, 24_000))).toBe(false)
                expect(yield* reason(encoder.finish)).toBe("WorkerDied")
                expect(yield* reason(encoder.ready)).toBe("WorkerDied")
              }
            }),
          )
          const opus = yield* encodeWith(pool, "opus", chirp(4800, 24_000), [100])
          expect(parseOgg(opus).pages.at(-1)?.endOfStream).toBe(true)
          expect(workers.length).toBe(2)
        }),
      { threads: 1, spawn },
    )
  })

  it.live("starts a thread that never came up again only when asked", () => {
    let spawned = 0
    const { spawn } = mortal()
    const flaky = () => (++spawned === 1 ? new Worker("process.exit(3)", { eval: true }) : spawn())
    return withPool(
      (pool) =>
        Effect.gen(function* () {
          const first = yield* reason(encodeWith(pool, "opus", chirp(480, 24_000), [480]))
          expect(first).toBe("WorkerDied")
          expect(spawned).toBe(1)
          yield* encodeWith(pool, "opus", chirp(480, 24_000), [480])
          expect(spawned).toBe(2)
        }),
      { threads: 1, spawn: flaky },
    )
  })

  it.live("asks to wait past its window, and is ready again when the thread has caught up", () =>
    withLasting((pool) =>
      Effect.scoped(
        Effect.gen(function* () {
          const encoder = yield* pool.open({ format: "mp3", onBytes: () => {} })
          expect(encoder.push(new Int16Array(windowSamples))).toBe(true)
          expect(encoder.push(new Int16Array(1))).toBe(false)
          yield* encoder.ready
          expect(encoder.push(new Int16Array(0))).toBe(true)
          expect((yield* encoder.finish).samples).toBe(windowSamples + 1)
        }),
      ),
    ),
  )

  it.live("gives up an encoder whose user never waits, and one that grows without end", () =>
    withPool(
      (pool) =>
        Effect.scoped(
          Effect.gen(function* () {
            const rude = yield* pool.open({ format: "mp3", onBytes: () => {} })
            const half = new Int16Array(overrunSamples / 2 + 1)
            rude.push(half)
            expect(rude.push(half)).toBe(false)
            expect(yield* reason(rude.ready)).toBe("Overrun")
            for (const format of ["wav", "mp3"] as const) {
              const endless = yield* pool.open({ format, onBytes: () => {} })
              for (let i = 0; i < 31; i++) endless.push(new Int16Array(1_000_000))
              expect(yield* reason(endless.finish)).toMatch(/TooLong|Overrun/)
            }
          }),
        ),
      { threads: 1, maxMs: 20 * 60_000 },
    ),
  )

  it.live("bounds the encoders that are open, and frees their places", () =>
    withPool(
      (pool) =>
        Effect.gen(function* () {
          const open = pool.open({ format: "opus", onBytes: () => {} })
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* open
              yield* open
              expect(yield* reason(open)).toBe("Busy")
            }),
          )
          yield* Effect.scoped(open)
        }),
      { threads: 2, maxOpen: 2 },
    ),
  )

  it.live("fails what is open when it is stopped", () =>
    Effect.gen(function* () {
      let wait: Fiber.Fiber<string> | undefined
      yield* withPool((pool) =>
        Effect.gen(function* () {
          const encoder = yield* Effect.scoped(pool.open({ format: "pcm", onBytes: () => {} }))
          expect(encoder.push(Int16Array.of(1))).toBe(true)
          wait = yield* Effect.forkDetach(
            reason(
              Effect.scoped(
                Effect.flatMap(pool.open({ format: "opus", onBytes: () => {} }), (opus) => opus.failed),
              ),
            ),
            { startImmediately: true },
          )
        }),
      )
      expect(yield* Fiber.join(wait!)).toBe("Closed")
    }),
  )

  it.live("lets a new reply begin while a long one is being encoded", () =>
    withLasting((pool) =>
      Effect.scoped(
        Effect.gen(function* () {
          const window = chirp(windowSamples, 24_000)
          const windowBytes = (yield* encodeWith(pool, "opus", window, [windowSamples])).length
          let longBytes = 0
          const long = yield* pool.open({
            format: "opus",
            onBytes: (bytes) => {
              longBytes += bytes.length
            },
          })
          for (let n = 0; n < 40; n++) long.push(window)
          yield* encodeWith(pool, "opus", chirp(4800, 24_000), [4800])
          // The short stream was whole before the long one, for which the thread needs eight seconds. How far that has come depends on how
          // late this thread is with each answer.
          expect(longBytes).toBeLessThan(39 * windowBytes)
        }),
      ),
    ),
  )

  it.live("is a layer", () =>
    Effect.gen(function* () {
      const pool = yield* CodecPool
      expect((yield* encodeWith(pool, "mp3", chirp(2400, 24_000), [2400])).length).toBeGreaterThan(0)
    }).pipe(Effect.provide(CodecPool.layer({ threads: 1 }))),
  )
})

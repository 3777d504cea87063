// `once` leaves tests of the ffmpeg program to test:long: support/groups/Runs.ts.
import { mkdtempSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { makeDecoder } from "#audio/Decoder.ts"
import { binding, DecoderProcess } from "#audio/DecoderProcess.ts"
import { chunkSamples, windowChunks } from "#audio/decoder/DecoderWire.ts"
import { CurrentProcessHome } from "#domain/process/ProcessHome.ts"
import { avTargets, chirp, writeWav, writeWithAv } from "../support/audio/AudioFiles.ts"
import { needs } from "../support/groups/Needs.ts"
import { childrenRunning, isRunning } from "../support/process/ChildProcesses.ts"
import { reason } from "../support/process/Reason.ts"
import {
  decodeAll,
  eachDecoder,
  ffmpeg,
  fileOf,
  folder,
  fresh,
  impostor,
  seconds,
  speech,
  toolsOf,
  watchedWith,
} from "./DecoderHarness.ts"

eachDecoder("the decoder", ({ once, program, watched, withDecoder }) => {
  it.live(
    "never runs further ahead of its reader than its window",
    () => {
      const { started, startProcess } = watched()
      return withDecoder(
        (decoder) =>
          Effect.scoped(
            Effect.gen(function* () {
              const path = fresh()
              writeWithAv(path, new Int16Array(120 * 8000), 8000, avTargets.flac)
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
                expect(samples.length).toBeLessThanOrEqual(chunkSamples)
              }
              expect(pulled).toBe(Math.ceil((120 * 16_000) / chunkSamples))
              // The first chunk is taken by `decode` itself and handed out by the first pull.
              expect(ahead).toBeLessThanOrEqual(windowChunks + 1)
            }),
          ),
        { startProcess },
      )
    },
    once,
  )

  it.live(
    "fails only the request whose process is killed; the next one works",
    () => {
      const { started, startProcess } = watched()
      return withDecoder(
        (decoder) =>
          Effect.gen(function* () {
            const path = fresh()
            writeWithAv(path, new Int16Array(120 * 8000), 8000, avTargets.flac)
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
    },
    once,
  )

  it.live(
    "reuses its process after an end and after a refusal, but not after an interruption",
    () => {
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
            writeWithAv(long, new Int16Array(120 * 8000), 8000, avTargets.flac)
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
    },
    once,
  )

  it.live(
    "bounds its processes and its queue",
    () =>
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
            expect((yield* Fiber.join(waiting)).samples.length).toBe(seconds * 16_000)
            yield* decodeAll(decoder, path)
          }),
        { maxProcesses: 1, maxWaiting: 1 },
      ),
    once,
  )

  it.live("has no file of a decode that was broken off in the folder of its process", () =>
    Effect.gen(function* () {
      const home = { folder: mkdtempSync(join(folder, "home-")), links: true, rings: undefined, closed: [] }
      const path = fresh()
      writeWav(path, chirp(60 * 16_000, 16_000), 16_000)
      const files = () =>
        readdirSync(home.folder, { recursive: true, encoding: "utf8" }).filter((name) =>
          name.includes("file-"),
        )
      const decoder = yield* makeDecoder({ program: Effect.succeed(program) }).pipe(
        Effect.provideService(CurrentProcessHome, home),
      )
      for (let nth = 0; nth < 3; nth++) {
        // Nothing takes its samples, so it waits in the middle of the file.
        yield* Effect.scoped(
          Effect.andThen(
            decoder.decode(path),
            Effect.sync(() => expect(files()).toHaveLength(1)),
          ),
        )
        expect(files()).toEqual([])
      }
    }).pipe(Effect.scoped),
  )
})

describe("a decoder, whatever its program", () => {
  const { withDecoder } = toolsOf(binding)

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
    let ended = false
    return withDecoder(
      (decoder) =>
        Effect.gen(function* () {
          const outcome = yield* Effect.scoped(
            Effect.gen(function* () {
              const decoded = yield* decoder.decode(fileOf("unread"))
              // Nothing takes the chunks until it is killed for them.
              while (!ended) yield* Effect.sleep(5)
              // Its window, and the chunk that `decode` itself has taken.
              for (let pulled = 0; pulled <= windowChunks + 1; pulled++) {
                const failure = yield* Effect.match(decoded.pull, {
                  onFailure: (error) => error,
                  onSuccess: () => undefined,
                })
                if (failure !== undefined) return failure
              }
              return undefined
            }),
          )
          expect(outcome?.reason).toBe("Died")
        }),
      {
        startProcess: (onDeath) =>
          flood(() => {
            ended = true
            onDeath()
          }),
      },
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

describe("an ffmpeg program", needs("ffmpeg"), () => {
  const long = () => {
    const path = fresh()
    writeWithAv(path, new Int16Array(120 * 8000), 8000, avTargets.flac)
    return path
  }
  const running = (pid: number) => childrenRunning("ffmpeg", pid)

  it.live("ends with its process, however that ends", () =>
    Effect.gen(function* () {
      const program = ffmpeg ?? binding
      for (const end of ["kill", "parent"] as const) {
        const { started, startProcess } = watchedWith(program)()
        const programs = yield* Effect.scoped(
          Effect.gen(function* () {
            const decoder = yield* makeDecoder({ startProcess })
            // Nothing takes its samples, so it waits in the middle of the file.
            yield* decoder.decode(long())
            const pid = started[0]!.pid!
            const found = running(pid)
            expect(started[0]!.pids).toEqual([pid, ...found])
            expect(decoder.pids()).toEqual([pid, ...found])
            if (end === "kill") started[0]!.kill()
            else process.kill(pid, "SIGKILL")
            return found
          }),
        )
        expect(programs.length).toBe(1)
        while (programs.some((pid) => isRunning(pid))) yield* Effect.sleep(5)
      }
    }),
  )
})

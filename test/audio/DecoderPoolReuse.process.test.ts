// Decoder processes are reused: the processes of the first four files serve the next four, and only one of
// them remains after a time without files.
import { mkdtempSync, rmSync } from "node:fs"
import { getPriority, tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { makeDecoder } from "#audio/Decoder.ts"
import { DecoderProcess, startDecoder } from "#audio/DecoderProcess.ts"
import { chirp, writeWav } from "../support/audio/AudioFiles.ts"
import { childrenRunning } from "../support/process/ChildProcesses.ts"
import { eachDecoder } from "./DecoderHarness.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-reuse-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const path = join(folder, "chirp")
writeWav(path, chirp(16_000, 16_000), 16_000)

eachDecoder("decoder processes", ({ program }) => {
  it.live("are reused by as many as came before, and let go but for one", () =>
    Effect.scoped(
      Effect.gen(function* () {
        let started = 0
        let ended = 0
        const decoder = yield* makeDecoder({
          spareMs: 300,
          idleMs: 60_000,
          startProcess: (onDeath) => {
            started++
            return new DecoderProcess(
              () => {
                ended++
                onDeath()
              },
              (own) => startDecoder(own, undefined, program),
            )
          },
        })
        const one = Effect.scoped(
          Effect.flatMap(decoder.decode(path), (decoded) => Stream.runDrain(decoded.stream)),
        )
        const four = Effect.all([one, one, one, one], { concurrency: 4 })
        yield* four
        // Short files go before files that are decoded ahead.
        const nice = Math.min(19, getPriority() + 10)
        expect(childrenRunning("decoderMain").map((pid) => getPriority(pid))).toEqual([
          nice,
          nice,
          nice,
          nice,
        ])
        yield* four
        yield* four
        expect(started).toBe(4)
        yield* Effect.eventually(
          Effect.suspend(() =>
            ended === 3 ? Effect.void : Effect.andThen(Effect.sleep(5), Effect.fail("some are there")),
          ),
        ).pipe(Effect.timeout("10 seconds"))
        yield* one
        expect([started, ended]).toEqual([4, 3])
      }),
    ),
  )
})

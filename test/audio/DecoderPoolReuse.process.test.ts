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
import { inLong } from "../support/groups/Runs.ts"
import { eachDecoder } from "./DecoderHarness.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-reuse-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const path = join(folder, "chirp")
writeWav(path, chirp(16_000, 16_000), 16_000)

eachDecoder(
  "decoder processes",
  ({ program }) => {
    const pool = Effect.fnUntraced(function* (spareMs: number) {
      const counts = { started: 0, ended: 0 }
      const processes: Array<DecoderProcess> = []
      const decoder = yield* makeDecoder({
        spareMs,
        idleMs: 60_000,
        startProcess: (onDeath) => {
          counts.started++
          const started = new DecoderProcess(
            () => {
              counts.ended++
              onDeath()
            },
            (own) => startDecoder(own, undefined, program),
          )
          processes.push(started)
          return started
        },
      })
      const one = Effect.scoped(
        Effect.flatMap(decoder.decode(path), (decoded) => Stream.runDrain(decoded.stream)),
      )
      return { counts, processes, one, four: Effect.all([one, one, one, one], { concurrency: 4 }) }
    })

    it.live("are reused by as many as came before", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { counts, four, processes } = yield* pool(60_000)
          yield* four
          // Short files go before files that are decoded ahead.
          const nice = Math.min(19, getPriority() + 10)
          expect(processes.map(({ pid }) => getPriority(pid))).toEqual([nice, nice, nice, nice])
          yield* four
          yield* four
          expect(counts).toEqual({ started: 4, ended: 0 })
        }),
      ),
    )

    it.live("are let go but for one, which is reused", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { counts, four, one } = yield* pool(300)
          yield* four
          const { started } = counts
          expect(started).toBeGreaterThan(1)
          yield* Effect.eventually(
            Effect.suspend(() =>
              counts.ended === started - 1
                ? Effect.void
                : Effect.andThen(Effect.sleep(5), Effect.fail("some are there")),
            ),
          )
          yield* one
          expect(counts).toEqual({ started, ended: started - 1 })
        }),
      ),
    )
  },
  inLong,
)

// Voice files: the row that a piece gets, and invalid files.
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { loadVoices, styleRows, styleSize } from "#engines/shared/speech/VoiceStyles.ts"

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "voices-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true })),
)

/** Row r of voice v holds v × 1000 + r everywhere. */
const voiceFile = (voice: number): Buffer => {
  const bytes = Buffer.alloc(styleRows * styleSize * 4)
  for (let i = 0; i < styleRows * styleSize; i++) {
    bytes.writeFloatLE(voice * 1000 + Math.floor(i / styleSize), i * 4)
  }
  return bytes
}

describe("voices", () => {
  it.effect("give row n for n symbols, and the last row for more", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* Effect.promise(() => writeFile(join(path, "af_one.bin"), voiceFile(1)))
      yield* Effect.promise(() => writeFile(join(path, "bm_two.bin"), voiceFile(2)))
      yield* Effect.promise(() => writeFile(join(path, "README.md"), "not a voice"))
      const voices = yield* loadVoices(path, undefined)
      expect([...voices.keys()]).toEqual(["af_one", "bm_two"])
      for (const [symbols, row] of [
        [1, 1],
        [42, 42],
        [508, 508],
        [509, 509],
        [510, 509],
      ] as const) {
        const style = voices.get("bm_two")!.row(symbols)
        expect(style.length).toBe(256)
        expect(new Set(style)).toEqual(new Set([2000 + row]))
      }
      expect([...(yield* loadVoices(path, ["bm_two"])).keys()]).toEqual(["bm_two"])
    }),
  )

  it.effect("fail to load with the voice's name and its size", () =>
    Effect.gen(function* () {
      const path = yield* folder
      expect((yield* Effect.flip(loadVoices(path, undefined))).detail).toContain("no voice file")
      yield* Effect.promise(() => writeFile(join(path, "af_short.bin"), Buffer.alloc(1024)))
      const short = yield* Effect.flip(loadVoices(path, undefined))
      expect(short.reason).toBe("LoadFailed")
      expect(short.detail).toContain("af_short: 1024 bytes, expected 522240")
      expect((yield* Effect.flip(loadVoices(path, ["am_none"]))).detail).toContain("am_none")
      expect((yield* Effect.flip(loadVoices(join(path, "nowhere"), undefined))).detail).toContain("folder")
    }),
  )
})

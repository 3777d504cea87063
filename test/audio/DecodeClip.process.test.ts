import { mkdtempSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { decodeClip } from "#audio/DecodeClip.ts"
import { chirp, wavBytes } from "../support/audio/AudioFiles.ts"
import { reason } from "../support/process/Reason.ts"
import { eachDecoder, fileOf, folder } from "./DecoderHarness.ts"

eachDecoder("decodeClip", ({ withDecoder }) => {
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

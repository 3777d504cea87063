// Decodes a reference clip for voice cloning. A clip is untrusted, so it takes the same path as every upload. The bytes
// go to disk, because the decoder reads files, not bodies.
import { randomUUID } from "node:crypto"
import { mkdir, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { f32ToS16, secondsToSamples } from "#domain/audio/Audio.ts"
import { DecoderFailed } from "./AudioErrors.ts"
import { type DecodeError, Decoder } from "./Decoder.ts"
import { removeSpooled } from "./SpoolFile.ts"

/** A minute of audio decodes in 0.1 s of CPU (measured); this is a hundred times that. */
const maxCpuMs = 10_000

interface ClipOptions {
  /** Longest clip, seconds. A longer one is refused, not cut, because its transcript would no longer match. */
  readonly maxSeconds: number
  readonly rateHz: number
  /** Folder for the bytes. Default: the system's temporary folder. */
  readonly spoolDir?: string
  /** The user who sent the clip; decoders are shared fairly between users. */
  readonly user?: string
}

/** Writes the bytes to a file that only this user can read. It is removed when the scope closes. */
const spooled = (bytes: Uint8Array, folder: string) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        const path = join(folder, `edgewise-clip-${randomUUID()}`)
        await writeFile(path, bytes, { mode: 0o600, flag: "wx" })
        return path
      },
      catch: () => new DecoderFailed({ reason: "Spool", detail: "the clip could not be written to disk" }),
    }),
    (path) => Effect.promise(() => removeSpooled(path)),
  )

/**
 * @param source the file's bytes, or its absolute path
 * @returns s16 samples, mono, at `rateHz`
 */
export const decodeClip = (
  source: Uint8Array | string,
  options: ClipOptions,
): Effect.Effect<Int16Array, DecodeError, Decoder> =>
  Effect.scoped(
    Effect.gen(function* () {
      const decoder = yield* Decoder
      const path = typeof source === "string" ? source : yield* spooled(source, options.spoolDir ?? tmpdir())
      const decoded = yield* decoder.decode(path, {
        rateHz: options.rateHz,
        limits: { maxSeconds: options.maxSeconds, maxCpuMs: maxCpuMs },
        ...(options.user === undefined ? {} : { user: options.user }),
      })
      const clip = new Int16Array(secondsToSamples(options.maxSeconds, options.rateHz))
      let filled = 0
      for (;;) {
        const samples = yield* decoded.pull
        if (samples === undefined) return clip.slice(0, filled)
        clip.set(f32ToS16(samples), filled)
        filled += samples.length
      }
    }),
  )

// A voice to clone, as samples: short, from a stranger, so it takes the same way as every upload. Called by the
// speech handler. The bytes touch the disk because the decoder seeks in files and never receives bodies.
import { randomUUID } from "node:crypto"
import { mkdir, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { f32ToS16, secondsToSamples } from "#domain/audio/Audio.ts"
import { DecoderFailed } from "./AudioErrors.ts"
import { type DecodeError, Decoder } from "./Decoder.ts"
import { removeSpooled } from "./SpoolFile.ts"

/** A minute of audio decodes in 0.1 s of CPU (measured); a hundred times that is an attack. */
const MAX_CPU_MS = 10_000

export interface ClipOptions {
  /** Longest clip, seconds; a longer one is refused, not cut: its transcript would no longer match. */
  readonly maxSeconds: number
  readonly rateHz: number
  /** Where bytes are written meanwhile; the system's temporary folder unless told. */
  readonly spoolDir?: string
  /** Whose clip it is: users take turns at the decoders. */
  readonly user?: string
}

/** The bytes in a file that only this user can read and that goes with the scope. */
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
 * @returns s16, mono, at `rateHz`
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
        limits: { maxSeconds: options.maxSeconds, maxCpuMs: MAX_CPU_MS },
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

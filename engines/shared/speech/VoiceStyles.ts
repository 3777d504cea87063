// Preset voices: files of 510 style rows, one row for each number of symbols. Read at load.
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { type EngineError, loadFailed } from "../../protocol/Engine.ts"

/** f32 [256], the style input of the graph. */
export const styleSize = 256
/** Rows of a voice file: f32 little-endian [510, 1, 256]. */
export const styleRows = 510
const fileBytes = styleRows * styleSize * 4

export interface VoiceStyle {
  /** The style of a piece with `symbols` symbols: row `min(symbols, 509)`, as the published model card does. */
  readonly row: (symbols: number) => Float32Array
}

/** A voice with the same style for every length. */
export const constantStyle = (style: Float32Array): VoiceStyle => ({ row: () => style })

/**
 * A mixture: each value is the weighted sum of those of its voices. Nothing is kept: a row costs a few microseconds, and is needed once a
 * piece.
 */
export const mixedStyle = (
  parts: ReadonlyArray<readonly [style: VoiceStyle, weight: number]>,
): VoiceStyle => ({
  row: (symbols) => {
    const sum = new Float32Array(styleSize)
    for (const [style, weight] of parts) {
      const row = style.row(symbols)
      for (let i = 0; i < styleSize; i++) sum[i]! += weight * row[i]!
    }
    return sum
  },
})

export const loadVoice = (path: string, name: string): Effect.Effect<VoiceStyle, EngineError> =>
  Effect.tryPromise({
    try: () => readFile(path),
    catch: () => loadFailed("", `voice ${name}: cannot be read`),
  }).pipe(
    Effect.flatMap((bytes) =>
      bytes.length === fileBytes
        ? Effect.succeed(fromBytes(bytes))
        : Effect.fail(loadFailed("", `voice ${name}: ${bytes.length} bytes, expected ${fileBytes}`)),
    ),
  )

const fromBytes = (bytes: Uint8Array): VoiceStyle => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const rows = new Float32Array(styleRows * styleSize)
  for (let i = 0; i < rows.length; i++) rows[i] = view.getFloat32(i * 4, true)
  return {
    row: (symbols) => {
      const at = Math.min(symbols, styleRows - 1) * styleSize
      return rows.subarray(at, at + styleSize)
    },
  }
}

/** Loads every `<id>.bin` of the folder, or only `wanted`, each of which must exist. Ids in alphabetical order. */
export const loadVoices = (
  folder: string,
  wanted: ReadonlyArray<string> | undefined,
): Effect.Effect<ReadonlyMap<string, VoiceStyle>, EngineError> =>
  Effect.gen(function* () {
    const found = yield* Effect.tryPromise({
      try: () => readdir(folder),
      catch: () => loadFailed("", "voices: the folder cannot be read"),
    })
    const ids = wanted ?? found.filter((file) => file.endsWith(".bin")).map((file) => file.slice(0, -4))
    const voices = new Map<string, VoiceStyle>()
    for (const id of [...ids].sort()) voices.set(id, yield* loadVoice(join(folder, `${id}.bin`), id))
    if (voices.size === 0) return yield* loadFailed("", "voices: the folder holds no voice file")
    return voices
  })

// Speech as MP3, 128 kbit/s constant, 24 kHz mono (specification). LAME in wasm; called on a codec worker thread.
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { createEncoder } from "wasm-media-encoders"
import { s16ToF32 } from "#domain/Audio.ts"

/** Kilobits a second, from the specification's table of formats. */
export const MP3_KBPS = 128

export interface Mp3Encoder {
  /** MP3 frames that became ready, copied. */
  readonly push: (samples: Int16Array) => Uint8Array
  readonly finish: () => Uint8Array
}

/**
 * Reads LAME once; the result makes encoders, each a wasm instance of its own, so that nothing of one reply can be
 * left over in the next. The first costs 4 ms, later ones 2 (measured; the package's own inlined copy costs 90).
 */
export const loadMp3 = async (): Promise<(rateHz: 16000 | 24000 | 48000) => Promise<Mp3Encoder>> => {
  const file = createRequire(import.meta.url).resolve("wasm-media-encoders/wasm/mp3")
  const wasm = await readFile(file)
  return async (rateHz) => {
    const lame = await createEncoder("audio/mpeg", wasm)
    lame.configure({ sampleRate: rateHz, channels: 1, bitrate: MP3_KBPS })
    return {
      // LAME's output buffer is reused by the next call.
      push: (samples) => Uint8Array.from(lame.encode([s16ToF32(samples)])),
      finish: () => Uint8Array.from(lame.finalize()),
    }
  }
}

// Speech as MP3, 128 kbit/s constant, 24 kHz mono (protocol 8.2). Uses LAME compiled to wasm; runs on a codec thread.
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { createEncoder } from "wasm-media-encoders"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import { mp3Crc, mp3InfoFrame } from "./Mp3Info.ts"

/** Kilobits a second (protocol 8.2). */
const mp3Kbps = 128

/** Bytes of one MPEG 2 frame: 576 samples at the bit rate. A whole number at both rates, so no frame is padded. */
const frameBytesAt = (rateHz: number): number => (72_000 * mp3Kbps) / rateHz

interface Mp3Encoder {
  readonly push: (samples: Int16Array) => void
  /** The whole file. Its first frame contains the number of frames, so no bytes are available earlier. */
  readonly finish: () => ReadonlyArray<Uint8Array>
}

/**
 * Reads LAME once and returns a function that makes encoders. Each has a wasm instance of its own, so that no data of
 * one reply remain in the next. The first costs 4 ms, later ones 2 (measured; the package's own inlined copy costs 90).
 */
export const loadMp3 = async (): Promise<(rateHz: 16000 | 24000) => Promise<Mp3Encoder>> => {
  const file = createRequire(import.meta.url).resolve("wasm-media-encoders/wasm/mp3")
  const wasm = await readFile(file)
  return async (rateHz) => {
    const lame = await createEncoder("audio/mpeg", wasm)
    lame.configure({ sampleRate: rateHz, channels: 1, bitrate: mp3Kbps })
    const frames: Array<Uint8Array> = []
    let samplesIn = 0
    let sizeBytes = 0
    let crc = 0
    const take = (encoded: Uint8Array) => {
      if (encoded.length === 0) return
      sizeBytes += encoded.length
      crc = mp3Crc(encoded, crc)
      // LAME reuses its output buffer in the next call.
      frames.push(Uint8Array.from(encoded))
    }
    return {
      push: (samples) => {
        samplesIn += samples.length
        take(lame.encode([s16ToF32(samples)]))
      },
      finish: () => {
        take(lame.finalize())
        const header = frames[0]
        if (header === undefined) return []
        const frameBytes = frameBytesAt(rateHz)
        const recording = {
          samples: samplesIn,
          frames: sizeBytes / frameBytes,
          frameBytes,
          kbps: mp3Kbps,
          crc,
        }
        return [mp3InfoFrame(header, recording), ...frames]
      },
    }
  }
}

// One libopus encoder (the wasm build inside opusscript): s16 frames in, packets out. Runs on codec threads only.
//
// The package's own class is not used. It shares one wasm heap among all encoders. It also mixes byte and element
// offsets and writes its PCM at twice the allocated address, which is another encoder's memory when several are alive.
// Here every encoder has a wasm instance of its own (1 to 2 ms, about 0.3 MB touched) and correct addresses.
import { createRequire } from "node:module"

/** The used part of the wasm module's interface. */
interface OpusModule {
  readonly HEAPU8: Uint8Array
  readonly HEAPU16: Uint16Array
  readonly _malloc: (sizeBytes: number) => number
  readonly OpusScriptHandler: (new (
    rateHz: number,
    channels: number,
    application: number,
  ) => OpusHandler) & {
    readonly destroy_handler: (handler: OpusHandler) => void
  }
}
interface OpusHandler {
  /** `pcmAddress`: one byte of little-endian PCM in each 16-bit cell. Returns the packet's size or a negative error. */
  readonly _encode: (
    pcmAddress: number,
    pcmBytes: number,
    packetAddress: number,
    frameSamples: number,
  ) => number
  readonly _encoder_ctl: (request: number, value: number) => number
}

const instantiate = createRequire(import.meta.url)(
  "opusscript/build/opusscript_native_wasm.js",
) as () => OpusModule

/** OPUS_APPLICATION_AUDIO: no high-pass filter or formant emphasis, so the voice stays as the model made it. */
const applicationAudio = 2049
const setBitrate = 4002
/** opus_defines.h recommends 4000; opusscript's own limit is 3 × 1276. */
const maxPacketBytes = 3828

interface OpusCodec {
  /** Takes exactly `frameSamples` samples; the packet is a copy. */
  readonly encode: (frame: Int16Array) => Uint8Array
  readonly close: () => void
}

/** @throws if libopus refuses the parameters */
export const makeOpusCodec = (options: {
  readonly rateHz: 8000 | 12000 | 16000 | 24000 | 48000
  readonly frameSamples: number
  readonly bitsPerSecond: number
}): OpusCodec => {
  const wasm = instantiate()
  const handler = new wasm.OpusScriptHandler(options.rateHz, 1, applicationAudio)
  const status = handler._encoder_ctl(setBitrate, options.bitsPerSecond)
  if (status < 0) throw new Error(`libopus refused ${options.bitsPerSecond} bit/s (error ${status})`)

  const pcmBytes = options.frameSamples * 2
  const pcmAddress = wasm._malloc(pcmBytes * 2)
  const packetAddress = wasm._malloc(maxPacketBytes)
  let open = true
  return {
    encode: (frame) => {
      // Read anew each time: the heap's views are replaced when its memory grows.
      const cells = wasm.HEAPU16
      let cell = pcmAddress >> 1
      for (let i = 0; i < options.frameSamples; i++) {
        const sample = frame[i]!
        cells[cell++] = sample & 0xff
        cells[cell++] = (sample >> 8) & 0xff
      }
      const size = handler._encode(pcmAddress, pcmBytes, packetAddress, options.frameSamples)
      if (size < 0) throw new Error(`libopus failed to encode (error ${size})`)
      return wasm.HEAPU8.slice(packetAddress, packetAddress + size)
    },
    close: () => {
      if (!open) return
      open = false
      wasm.OpusScriptHandler.destroy_handler(handler)
    },
  }
}

// One libopus encoder or decoder (the wasm build inside opusscript): s16 frames to packets, and back. Runs on codec threads and in the
// process of calls, never on the gateway's event loop.
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
  readonly _free: (address: number) => void
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
  /** Writes PCM as `_encode` reads it. Returns the number of samples or a negative error. */
  readonly _decode: (packetAddress: number, packetBytes: number, pcmAddress: number) => number
}

/**
 * A wasm instance. Its memory is reserved with it (16 MB, of which little is touched) and given back when it is collected, so a process with many
 * codecs shares one among them.
 */
export const opusModule = createRequire(import.meta.url)(
  "opusscript/build/opusscript_native_wasm.js",
) as () => OpusModule

/** OPUS_APPLICATION_AUDIO: no high-pass filter or formant emphasis, so the voice stays as the model made it. */
const applicationAudio = 2049
/** OPUS_APPLICATION_VOIP: speech that has to be understood, and redundancy for lost packets. */
const applicationVoip = 2048
const setBitrate = 4002
const setComplexity = 4010
const setInbandFec = 4012
const setExpectedLoss = 4014
/** opus_defines.h recommends 4000; opusscript's own limit is 3 × 1276. */
const maxPacketBytes = 3828

interface OpusCodec {
  /** Takes exactly `frameSamples` samples; the packet is a copy. */
  readonly encode: (frame: Int16Array) => Uint8Array
  /** Of `voip`: packets carry the one before again, as far as this share of them is lost. */
  readonly expectLoss: (share: number) => void
  readonly close: () => void
}

type OpusRate = 8000 | 12000 | 16000 | 24000 | 48000

/**
 * @param wasm absent: an instance of its own
 * @throws if libopus refuses the parameters
 */
export const makeOpusCodec = (
  options: {
    readonly rateHz: OpusRate
    readonly frameSamples: number
    readonly bitsPerSecond: number
    /** Absent: for listening, at libopus's own complexity. Otherwise for calls, at this complexity, 0 to 10, with redundancy. */
    readonly voip?: number
  },
  wasm: OpusModule = opusModule(),
): OpusCodec => {
  const { bitsPerSecond, rateHz, voip } = options
  const handler = new wasm.OpusScriptHandler(
    rateHz,
    1,
    voip === undefined ? applicationAudio : applicationVoip,
  )
  const set = (request: number, value: number): void => {
    const status = handler._encoder_ctl(request, value)
    if (status < 0) throw new Error(`libopus refused setting ${request} to ${value} (error ${status})`)
  }
  set(setBitrate, bitsPerSecond)
  if (voip !== undefined) {
    set(setComplexity, voip)
    set(setInbandFec, 1)
  }

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
    expectLoss: (share) => set(setExpectedLoss, Math.round(100 * Math.min(0.3, share))),
    close: () => {
      if (!open) return
      open = false
      wasm.OpusScriptHandler.destroy_handler(handler)
      wasm._free(pcmAddress)
      wasm._free(packetAddress)
    },
  }
}

/** Most samples of a packet in 120 ms at 48 kHz: opusscript decodes with room for so many. */
const mostDecodedSamples = 5_760

interface OpusDecoder {
  /** All samples of a packet, mono, a copy; undefined for one that cannot be decoded. */
  readonly decode: (packet: Uint8Array) => Int16Array | undefined
  readonly close: () => void
}

/** Stereo packets are mixed down, and other rates resampled, by libopus. */
export const makeOpusDecoder = (rateHz: OpusRate, wasm: OpusModule = opusModule()): OpusDecoder => {
  const handler = new wasm.OpusScriptHandler(rateHz, 1, applicationVoip)
  const packetAddress = wasm._malloc(maxPacketBytes)
  const pcmAddress = wasm._malloc(mostDecodedSamples * 2 * 2)
  let open = true
  return {
    decode: (packet) => {
      if (packet.length === 0 || packet.length > maxPacketBytes) return undefined
      wasm.HEAPU8.set(packet, packetAddress)
      const count = handler._decode(packetAddress, packet.length, pcmAddress)
      if (count < 0) return undefined
      const cells = wasm.HEAPU16
      const samples = new Int16Array(count)
      let cell = pcmAddress >> 1
      for (let i = 0; i < count; i++) {
        samples[i] = (cells[cell]! & 0xff) | ((cells[cell + 1]! & 0xff) << 8)
        cell += 2
      }
      return samples
    },
    close: () => {
      if (!open) return
      open = false
      wasm.OpusScriptHandler.destroy_handler(handler)
      wasm._free(pcmAddress)
      wasm._free(packetAddress)
    },
  }
}

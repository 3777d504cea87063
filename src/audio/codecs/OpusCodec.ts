// libopus, built for WebAssembly: s16 frames to packets, and back. Runs on codec threads and in the process of calls, never on the gateway's
// event loop. All encoders and decoders of a thread share one instance.
import { Application, createDecoder, createEncoder, type SampleRate } from "libopus-wasm"

/** libopus's own complexity, of which calls cannot afford as much. */
const usualComplexity = 9
/** opus_defines.h recommends 4000 for what is sent; no packet of 120 ms has more. */
const maxPacketBytes = 3828

export interface OpusEncoder {
  /** Takes exactly `frameSamples` samples; the packet is a copy. */
  readonly encode: (frame: Int16Array) => Uint8Array
  /** Of `voip`: packets carry the one before again, as far as this share of them is lost. */
  readonly expectLoss: (share: number) => void
  readonly close: () => void
}

/** Fails if libopus refuses the parameters. */
export const makeOpusEncoder = async (options: {
  readonly rateHz: SampleRate
  readonly frameSamples: number
  readonly bitsPerSecond: number
  /** Absent: for listening; the voice stays as the model made it. Otherwise for calls, at this complexity, 0 to 10, with redundancy. */
  readonly voip?: number
}): Promise<OpusEncoder> => {
  const { bitsPerSecond, frameSamples, rateHz, voip } = options
  const encoder = await createEncoder({
    sampleRate: rateHz,
    channels: 1,
    frameSize: frameSamples,
    bitrate: bitsPerSecond,
    complexity: voip ?? usualComplexity,
    application: voip === undefined ? Application.Audio : Application.Voip,
    fec: voip !== undefined,
  })
  return {
    encode: (frame) => encoder.encode(frame),
    expectLoss: (share) => encoder.setPacketLossPercent(Math.round(100 * Math.min(0.3, share))),
    close: () => encoder.free(),
  }
}

/** Lengths that libopus conceals are multiples of 2.5 ms. */
const stepsPerSecond = 400
/** The longest loss that it conceals in one call, seconds. Beyond it there is nothing left that sounds like speech. */
const concealedSeconds = 0.12

export interface OpusDecoder {
  /** All samples of a packet, mono, a copy; undefined for one that cannot be decoded. */
  readonly decode: (packet: Uint8Array) => Int16Array | undefined
  /**
   * What stands for lost audio. Its end comes from the redundancy of the packet behind it, if that has some; the rest is made from what was
   * before. To be called before that packet is decoded.
   */
  readonly conceal: (samples: number, next: Uint8Array | undefined) => Int16Array
  readonly close: () => void
}

/** Stereo packets are mixed down, and other rates resampled, by libopus. */
export const makeOpusDecoder = async (rateHz: SampleRate): Promise<OpusDecoder> => {
  const decoder = await createDecoder({ sampleRate: rateHz, channels: 1 })
  const step = rateHz / stepsPerSecond
  const most = rateHz * concealedSeconds
  const orNone = (decode: () => Int16Array): Int16Array | undefined => {
    try {
      return decode()
    } catch {
      return undefined
    }
  }
  return {
    decode: (packet) =>
      packet.length === 0 || packet.length > maxPacketBytes
        ? undefined
        : orNone(() => decoder.decode(packet)),
    conceal: (samples, next) => {
      const out = new Int16Array(samples)
      const whole = Math.floor(samples / step) * step
      const put = (at: number, length: number, packet: Uint8Array | undefined): void => {
        if (length === 0) return
        const made = orNone(() =>
          packet === undefined
            ? decoder.decodePacketLoss(length)
            : decoder.decode(packet, { decodeFec: true, frameSize: length }),
        )
        if (made !== undefined) out.set(made, at)
      }
      const head = Math.max(0, whole - most)
      put(0, Math.min(head, most), undefined)
      put(head, whole - head, next)
      return out
    },
    close: () => decoder.free(),
  }
}

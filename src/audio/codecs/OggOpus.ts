// Speech as an Ogg Opus stream (RFC 7845), page by page. The headers are a pure function, so that the gateway can send
// them at once; the encoder runs on a codec thread.
//
// Pages depend on packet numbers only, not on how the samples were split: the same samples give the same bytes.
import { speechRateHz } from "#domain/audio/Audio.ts"
import { OggFlag, oggPage } from "./OggPage.ts"
import { makeOpusEncoder } from "./OpusCodec.ts"

/** The rate of all Opus granule positions and decoders (RFC 7845 section 4); the 48 kHz of protocol 8.2. */
const granuleRateHz = 48_000
/** libopus's lookahead of 6.5 ms: 156 samples at 24 kHz. The headers are written before there is an encoder to ask; checked by a test. */
export const preSkip = 312
/** 20 ms: libopus's usual frame, and the shortest that still codes speech well. */
const frameMs = 20
/** Above this, more bits are inaudible for a 24 kHz voice. A guess, close to opusenc's default for mono speech. */
const bitsPerSecond = 48_000
/** Pages with a single packet at the start: the first 200 ms are sent without further delay. */
const singlePacketPages = 10
/** Later pages carry 60 ms: 28 bytes of page header are then 4 kbit/s instead of 11. */
const packetsPerPage = 3
/**
 * The stream's serial number. Constant, because a cloning model gives the same bytes for the same request (protocol
 * 8.1). It must only differ between streams multiplexed in one file, and there is one.
 */
export const oggSerial = 0x65646765

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text)

const opusHead = (inputRateHz: number): Uint8Array => {
  const packet = new Uint8Array(19)
  const view = new DataView(packet.buffer)
  packet.set(ascii("OpusHead"))
  packet[8] = 1 // version
  packet[9] = 1 // channels
  view.setUint16(10, preSkip, true)
  view.setUint32(12, inputRateHz, true)
  return packet // output gain 0, mapping family 0
}

const opusTags = (): Uint8Array => {
  const vendor = ascii("edgewise")
  const packet = new Uint8Array(16 + vendor.length)
  packet.set(ascii("OpusTags"))
  new DataView(packet.buffer).setUint32(8, vendor.length, true)
  packet.set(vendor, 12)
  return packet // no user comments
}

/** The two header pages, always pages 0 and 1. */
export const oggOpusHeaders = (): Uint8Array => {
  const page = (sequence: number, flags: number, packet: Uint8Array) =>
    oggPage({ flags, granule: 0n, serial: oggSerial, sequence, packets: [packet] })
  const head = page(0, OggFlag.beginOfStream, opusHead(speechRateHz))
  const tags = page(1, OggFlag.none, opusTags())
  const bytes = new Uint8Array(head.length + tags.length)
  bytes.set(head)
  bytes.set(tags, head.length)
  return bytes
}

interface OggOpusEncoder {
  /** Complete pages; none of them is marked as the end of the stream. */
  readonly push: (samples: Int16Array) => ReadonlyArray<Uint8Array>
  /** The remaining pages. The last one is marked as the end of the stream and cut to the input's exact length. */
  readonly finish: () => ReadonlyArray<Uint8Array>
  readonly close: () => void
}

/** Everything after the headers, from 24 kHz mono samples. */
export const makeOggOpusEncoder = async (): Promise<OggOpusEncoder> => {
  const frameSamples = (speechRateHz * frameMs) / 1000
  const granulesPerSample = granuleRateHz / speechRateHz
  const codec = await makeOpusEncoder({ rateHz: speechRateHz, frameSamples, bitsPerSecond })
  const frame = new Int16Array(frameSamples)
  let filled = 0
  let inputSamples = 0
  let codedFrames = 0
  let sequence = 2
  let held: Array<Uint8Array> = []

  const encodeFrame = () => {
    held.push(codec.encode(frame))
    codedFrames++
    filled = 0
  }
  const page = (flags: number, granule: number): Uint8Array => {
    const packets = held
    held = []
    return oggPage({ flags, granule: BigInt(granule), serial: oggSerial, sequence: sequence++, packets })
  }
  return {
    push: (samples) => {
      const pages: Array<Uint8Array> = []
      inputSamples += samples.length
      for (let at = 0; at < samples.length; ) {
        const take = Math.min(frameSamples - filled, samples.length - at)
        frame.set(samples.subarray(at, at + take), filled)
        filled += take
        at += take
        if (filled < frameSamples) break
        encodeFrame()
        if (held.length >= (codedFrames <= singlePacketPages ? 1 : packetsPerPage)) {
          pages.push(page(OggFlag.none, codedFrames * frameSamples * granulesPerSample))
        }
      }
      return pages
    },
    finish: () => {
      // The decoder drops preSkip samples at the start, so zeros follow until the whole input has been output. At
      // least one frame is always left to code here, so `push` need not hold one back for the end mark.
      const wanted = inputSamples + preSkip / granulesPerSample
      while (codedFrames * frameSamples < wanted) {
        frame.fill(0, filled)
        encodeFrame()
      }
      return [page(OggFlag.endOfStream, wanted * granulesPerSample)]
    },
    close: codec.close,
  }
}

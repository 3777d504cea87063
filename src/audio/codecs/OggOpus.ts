// Speech as an Ogg Opus stream (RFC 7845), page by page. The headers are a pure function, so that the gateway can send
// them at once; the encoder runs on a codec thread.
//
// Pages depend on packet numbers only, not on how the samples were split: the same samples give the same bytes.
import { SPEECH_RATE_HZ } from "#domain/audio/Audio.ts"
import { OggFlag, oggPage } from "./OggPage.ts"
import { makeOpusCodec } from "./OpusCodec.ts"

/** The rate of all Opus granule positions and decoders (RFC 7845 section 4); the 48 kHz of protocol 8.2. */
const GRANULE_RATE_HZ = 48_000
/** libopus's lookahead of 6.5 ms: 156 samples at 24 kHz. The wasm build has no getter for it; checked by a test. */
export const PRE_SKIP = 312
/** 20 ms: libopus's usual frame, and the shortest that still codes speech well. */
const FRAME_MS = 20
/** Above this, more bits are inaudible for a 24 kHz voice. A guess, close to opusenc's default for mono speech. */
const BITS_PER_SECOND = 48_000
/** Pages with a single packet at the start: the first 200 ms are sent without further delay. */
const SINGLE_PACKET_PAGES = 10
/** Later pages carry 60 ms: 28 bytes of page header are then 4 kbit/s instead of 11. */
const PACKETS_PER_PAGE = 3
/**
 * The stream's serial number. Constant, because a cloning model gives the same bytes for the same request (protocol
 * 8.1). It must only differ between streams multiplexed in one file, and there is one.
 */
export const OGG_SERIAL = 0x65646765

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text)

const opusHead = (inputRateHz: number): Uint8Array => {
  const packet = new Uint8Array(19)
  const view = new DataView(packet.buffer)
  packet.set(ascii("OpusHead"))
  packet[8] = 1 // version
  packet[9] = 1 // channels
  view.setUint16(10, PRE_SKIP, true)
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
    oggPage({ flags, granule: 0n, serial: OGG_SERIAL, sequence, packets: [packet] })
  const head = page(0, OggFlag.beginOfStream, opusHead(SPEECH_RATE_HZ))
  const tags = page(1, OggFlag.none, opusTags())
  const bytes = new Uint8Array(head.length + tags.length)
  bytes.set(head)
  bytes.set(tags, head.length)
  return bytes
}

export interface OggOpusEncoder {
  /** Complete pages; none of them is marked as the end of the stream. */
  readonly push: (samples: Int16Array) => ReadonlyArray<Uint8Array>
  /** The remaining pages. The last one is marked as the end of the stream and cut to the input's exact length. */
  readonly finish: () => ReadonlyArray<Uint8Array>
  readonly close: () => void
}

/** Everything after the headers, from 24 kHz mono samples. */
export const makeOggOpusEncoder = (): OggOpusEncoder => {
  const frameSamples = (SPEECH_RATE_HZ * FRAME_MS) / 1000
  const granulesPerSample = GRANULE_RATE_HZ / SPEECH_RATE_HZ
  const codec = makeOpusCodec({ rateHz: SPEECH_RATE_HZ, frameSamples, bitsPerSecond: BITS_PER_SECOND })
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
    return oggPage({ flags, granule: BigInt(granule), serial: OGG_SERIAL, sequence: sequence++, packets })
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
        if (held.length >= (codedFrames <= SINGLE_PACKET_PAGES ? 1 : PACKETS_PER_PAGE)) {
          pages.push(page(OggFlag.none, codedFrames * frameSamples * granulesPerSample))
        }
      }
      return pages
    },
    finish: () => {
      // The decoder drops PRE_SKIP samples at the start, so zeros follow until the whole input has been output. At
      // least one frame is always left to code here, so `push` need not hold one back for the end mark.
      const wanted = inputSamples + PRE_SKIP / granulesPerSample
      while (codedFrames * frameSamples < wanted) {
        frame.fill(0, filled)
        encodeFrame()
      }
      return [page(OggFlag.endOfStream, wanted * granulesPerSample)]
    },
    close: codec.close,
  }
}

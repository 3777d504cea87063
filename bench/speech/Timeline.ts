// The playback of a streamed reply: when the first audio and the first audible sound arrived, and whether a player that
// starts at once would have run out of audio. Computed from bytes and their arrival times. Pure.
import { createDecoder } from "libopus-wasm"
import { type Playback, play } from "#harness/figures/VirtualPlayer.ts"
import type { StreamFormat } from "./Models.ts"

export interface Arrival {
  readonly atMs: number
  readonly bytes: Uint8Array
}

/** Samples at 24 kHz that had arrived at a time. */
interface Step {
  readonly atMs: number
  readonly samples: number
}

export interface Listening extends Playback {
  readonly firstAudioMs: number
  /** The first sample above −40 dBFS. */
  readonly firstSoundMs: number
}

const soundLevel = 32_768 / 100
const samplesPerMs = 24

const isLoud = (samples: Int16Array): boolean => samples.some((sample) => Math.abs(sample) > soundLevel)

const joined = (arrivals: ReadonlyArray<Arrival>): Buffer => Buffer.concat(arrivals.map(({ bytes }) => bytes))

/** When the byte before `end` arrived. */
const arrivalOf = (arrivals: ReadonlyArray<Arrival>, end: number): number => {
  let seen = 0
  for (const { atMs, bytes } of arrivals) {
    seen += bytes.length
    if (seen >= end) return atMs
  }
  return Number.NaN
}

interface Track {
  readonly steps: ReadonlyArray<Step>
  readonly firstSoundMs: number
}

const pcmTrack = (arrivals: ReadonlyArray<Arrival>): Track => {
  const whole = joined(arrivals)
  const loudAt = (() => {
    for (let at = 0; at + 1 < whole.length; at += 2)
      if (Math.abs(whole.readInt16LE(at)) > soundLevel) return at + 2
    return whole.length + 1
  })()
  let seen = 0
  const steps = arrivals.map(({ atMs, bytes }) => {
    seen += bytes.length
    return { atMs, samples: Math.floor(seen / 2) }
  })
  return { steps, firstSoundMs: arrivalOf(arrivals, loudAt) }
}

/** Page by page: end in the file, granule, packets. The writer never divides a packet between two pages. */
function* oggPages(whole: Buffer) {
  for (let at = 0; at + 27 <= whole.length; ) {
    const segments = whole[at + 26] ?? 0
    const lacing = whole.subarray(at + 27, at + 27 + segments)
    let from = at + 27 + segments
    const packets: Array<Buffer> = []
    let size = 0
    for (const lace of lacing) {
      size += lace
      if (lace === 255) continue
      packets.push(whole.subarray(from, from + size))
      from += size
      size = 0
    }
    yield { end: from, granule: Number(whole.readBigInt64LE(at + 6)), packets }
    at = from
  }
}

const headerPages = 2

const opusTrack = async (arrivals: ReadonlyArray<Arrival>): Promise<Track> => {
  const whole = joined(arrivals)
  const decoder = await createDecoder({ sampleRate: 48_000, channels: 1 })
  const steps: Array<Step> = []
  let firstSoundMs = Number.NaN
  let index = 0
  for (const { end, granule, packets } of oggPages(whole)) {
    if (index++ < headerPages) continue
    const atMs = arrivalOf(arrivals, end)
    steps.push({ atMs, samples: granule / 2 })
    // Decode only until the first sound is found.
    if (Number.isNaN(firstSoundMs) && packets.some((packet) => isLoud(decoder.decode(packet))))
      firstSoundMs = atMs
  }
  decoder.free()
  return { steps, firstSoundMs }
}

/** `sentMs` and the arrivals on one clock. */
export const listen = async (
  format: StreamFormat,
  sentMs: number,
  arrivals: ReadonlyArray<Arrival>,
): Promise<Listening> => {
  const { firstSoundMs, steps } = format === "pcm" ? pcmTrack(arrivals) : await opusTrack(arrivals)
  const firstAudioMs = (steps.find(({ samples }) => samples > 0)?.atMs ?? Number.NaN) - sentMs
  const delivered = steps.map(({ atMs, samples }) => ({ atMs, audioMs: samples / samplesPerMs }))
  return { firstAudioMs, firstSoundMs: firstSoundMs - sentMs, ...play(delivered) }
}

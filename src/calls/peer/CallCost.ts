// What a call needs of this machine's processor, measured in a moment: Opus in both directions, and what the WebRTC library needs besides.
import { makeOpusDecoder, makeOpusEncoder } from "#audio/codecs/OpusCodec.ts"
import { speechRateHz } from "#domain/audio/Audio.ts"
import { outgoingTerms, packetMs } from "./OutgoingAudio.ts"

/** Share of a thread that the library needs for the packets of a call (measured: 50 a second each way, on an AMD EPYC). */
const packetShare = 0.01

/** Measured after as many that are not counted. */
const packets = 250

/** A buzz with the harmonics of a voice, whose pitch and loudness change: speech costs the encoder as much, within some per cent. A guess. */
const voiceLike = (nth: number, samples: number): Int16Array =>
  Int16Array.from({ length: samples }, (_, at) => {
    const seconds = (nth * samples + at) / speechRateHz
    const phase = 2 * Math.PI * (120 * seconds + 3 * Math.sin(4 * seconds))
    let sum = 0
    for (let harmonic = 1; harmonic <= 12; harmonic++) sum += Math.sin(harmonic * phase) / harmonic
    return Math.round(6_000 * (1 + Math.sin(9 * seconds)) * sum * 0.4)
  })

/** Share of a thread that a call takes which speaks and listens. */
export const callShare = async (): Promise<number> => {
  const encoder = await makeOpusEncoder(outgoingTerms)
  const decoder = await makeOpusDecoder(speechRateHz)
  const frames = Array.from({ length: 2 * packets }, (_, nth) => voiceLike(nth, outgoingTerms.frameSamples))
  let before = process.cpuUsage()
  for (const [nth, frame] of frames.entries()) {
    // What other processes do does not count.
    if (nth === packets) before = process.cpuUsage()
    decoder.decode(encoder.encode(frame))
  }
  const { system, user } = process.cpuUsage(before)
  const usedMs = (system + user) / 1_000
  encoder.close()
  decoder.close()
  return usedMs / (packets * packetMs) + packetShare
}

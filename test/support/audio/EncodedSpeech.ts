// A chirp of so many samples at 24 kHz as the product's encoders write it, whole files as bytes.
import { loadMp3 } from "#audio/codecs/Mp3.ts"
import { makeOggOpusEncoder, oggOpusHeaders } from "#audio/codecs/OggOpus.ts"
import { wavHeader } from "#audio/codecs/Wav.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { chirp } from "./AudioFiles.ts"

/** About a frame, a page and some seconds. */
export const encodedLengths = [1, 323, 480, 481, 4800, 24_000 * 3 + 17]

export const encodedOpus = async (samples: number, finished = true): Promise<Uint8Array> => {
  const encoder = await makeOggOpusEncoder()
  const parts = [oggOpusHeaders(), ...encoder.push(chirp(samples, 24_000))]
  if (finished) parts.push(...encoder.finish())
  encoder.close()
  return new Uint8Array(Buffer.concat(parts))
}

export const encodedMp3 = async (samples: number): Promise<Uint8Array> => {
  const encoder = await (await loadMp3())(24_000)
  encoder.push(chirp(samples, 24_000))
  return new Uint8Array(Buffer.concat(encoder.finish()))
}

export const encodedWav = (samples: number): Uint8Array =>
  new Uint8Array(Buffer.concat([wavHeader(samples, 24_000), s16ToBytes(chirp(samples, 24_000))]))

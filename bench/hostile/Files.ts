// Small valid audio files of the containers that the fuzzer mutates, the same in every run. Pure.
import { chirp, wavBytes } from "../../test/support/audio/AudioFiles.ts"
import { constantFlac, silentOpus, tinyFramesMp3 } from "../../test/support/audio/HostileFiles.ts"
import { boastingFragments, boastingTables, longSilence } from "../../test/support/audio/HostileMp4.ts"

interface AudioFile {
  readonly name: string
  readonly bytes: Buffer
}

const rateHz = 16_000
const sound = chirp(rateHz / 4, rateHz)
const wav = (depth: "8a" | "16" | "32f"): AudioFile => ({
  name: "a.wav",
  bytes: Buffer.from(wavBytes(sound, rateHz, depth)),
})

/** Ogg and MP4 stand twice: their containers have the most structure. */
export const audioFiles: readonly [AudioFile, ...ReadonlyArray<AudioFile>] = [
  wav("16"),
  wav("8a"),
  wav("32f"),
  { name: "a.ogg", bytes: silentOpus(1_200) },
  { name: "a.ogg", bytes: silentOpus(3_000) },
  { name: "a.m4a", bytes: longSilence(20) },
  { name: "a.m4a", bytes: boastingTables(64, 2, { offsets: true, sizeBytes: 256 }) },
  { name: "a.mp4", bytes: boastingFragments(16, 2) },
  { name: "a.flac", bytes: constantFlac(120) },
  { name: "a.mp3", bytes: tinyFramesMp3(12) },
]

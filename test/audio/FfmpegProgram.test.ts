// What the program prints about itself, as FFmpeg 4.4, 5.1, 7.0 and a build without a release print it.
import { expect, it } from "vitest"
import { readDecoders, readVersion } from "#audio/FfmpegProgram.ts"

const printed = (version: string, format: string) =>
  `ffmpeg version ${version} Copyright (c) 2000-2024 the FFmpeg developers
built with gcc 12 (Debian 12.2.0-14+deb12u1)
libavutil      57. 28.100 / 57. 28.100
libavcodec     59. 37.100 / 59. 37.100
libavformat    ${format} / ${format}
`

it("reads the version, and knows by that of the library what is too old", () => {
  expect(readVersion(printed("4.4.2-0ubuntu0.22.04.1", "58. 76.100"))).toEqual({
    version: "4.4.2-0ubuntu0.22.04.1",
    tooOld: true,
  })
  expect(readVersion(printed("5.0.1", "59. 16.100")).tooOld).toBe(true)
  expect(readVersion(printed("5.1.9-0+deb12u1", "59. 27.100"))).toEqual({
    version: "5.1.9-0+deb12u1",
    tooOld: false,
  })
  expect(readVersion(printed("N-120000-g1234567", "62.  1.100"))).toEqual({
    version: "N-120000-g1234567",
    tooOld: false,
  })
  expect(readVersion("another program")).toEqual({ version: "of an unknown version", tooOld: true })
})

it("reads the names of audio decoders", () => {
  const table = `Decoders:
 V..... = Video
 A..... = Audio
 ------
 V....D h264                 H.264 / AVC
 A....D aac                  AAC (Advanced Audio Coding)
 AF...D flac                 FLAC (Free Lossless Audio Codec)
 S..... srt                  SubRip subtitle
`
  const names = readDecoders(table)
  expect([names.has("aac"), names.has("flac"), names.has("h264"), names.has("srt")]).toEqual([
    true,
    true,
    false,
    false,
  ])
})

import { expect, it } from "vitest"
import { channelsOf, factsOf } from "#audio/decoder/ProgramDecode.ts"

it("counts the channels of the layouts that FFmpeg names", () => {
  const layouts = {
    mono: 1,
    stereo: 2,
    "2.1": 3,
    quad: 4,
    "5.0(side)": 5,
    "5.1": 6,
    "7.1(wide)": 8,
    "5.1.2": 8,
    "22.2": 24,
    "9 channels": 9,
    "40 channels (FL+FR)": 40,
    "of another planet": 0,
  }
  for (const [layout, channels] of Object.entries(layouts))
    expect([layout, channelsOf(layout)]).toEqual([layout, channels])
})

it("reads the description of a track, and nothing from half of one", () => {
  const text = `#extradata 0:        5, 0x056101dc
#software: Lavf59.27.100
#tb 0: 1/48000
#media_type 0: audio
#codec_id 0: aac
#sample_rate 0: 48000
#channel_layout_name 0: stereo
0,      -1024,      -1024,     1024,      285, 0x974b87ef, F=0x5, S=1,       10
`
  expect(factsOf(text)).toEqual({ codec: "aac", sourceRateHz: 48_000, channels: 2 })
  expect(factsOf(text.slice(0, text.indexOf("#channel")))).toBeUndefined()
  expect(factsOf("")).toBeUndefined()
})

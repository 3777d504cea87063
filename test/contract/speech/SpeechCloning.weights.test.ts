// Reference clips through /v1/audio/speech: which are accepted as a voice, in which forms, and which are refused with a
// reason.

import { afterAll, beforeAll, describe, expect, it } from "vitest"
import wavefile from "wavefile"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { wavBytes } from "../../support/audio/AudioFiles.ts"
import { wavOf } from "../../support/audio/WavFile.ts"
import { jsonOf, type RawResponse } from "../../support/clients/RawHttp.ts"
import { runs } from "../../support/groups/Runs.ts"
import { cloneModel, presetModel, speak } from "../../support/nodes/SpeechNode.ts"
import { startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
/** Four seconds of a voice, 24 kHz s16 mono. */
let man: Int16Array
let woman: Int16Array
const words = "The birch canoe slid on the smooth planks, and no one saw it."
beforeAll(async () => {
  node = await startNode({ models: [presetModel, cloneModel] })
  const preset = async (voice: string) =>
    bytesToS16((await speak(node, { model: "tts-82m", voice, input: words })).body)
  ;[man, woman] = await Promise.all([preset("am_adam"), preset("bf_emma")])
  await say({ voice: "default" })
})
afterAll(() => node.stop())

const say = (more: object): Promise<RawResponse> =>
  speak(node, { model: "tts-3b-ml", input: "Good morning.", voice_transcript: words, ...more })
const clip = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")
const expectRefusal = (reply: RawResponse, start: string): void => {
  expect([reply.status, reply.body.toString("utf8")]).toEqual([400, expect.any(String)])
  const { detail } = jsonOf(reply) as { readonly detail: string }
  expect(detail.startsWith(start), detail).toBe(true)
  expect(detail).not.toMatch(/\n|tmp|node_modules|\.ts\b/)
}

describe("a reference clip", () => {
  it("is a voice: each clip its own, the same each time", async () => {
    const bodies = await Promise.all(
      [
        { voice: "default" },
        { voice: clip(wavBytes(man, 24_000, "16")) },
        { voice: clip(wavBytes(woman, 24_000, "16")) },
      ]
        .flatMap((more) => [more, more])
        .map(async (more) => (await say(more)).body.toString("base64")),
    )
    expect(new Set(bodies).size).toBe(3)
    expect(bodies[0]).toBe(bodies[1])
    expect(bodies[2]).toBe(bodies[3])
    expect(bodies[4]).toBe(bodies[5])
  })

  it("may be base64 of any custom, or a data: URL", async () => {
    const base64 = clip(wavBytes(man.slice(0, 60_001), 24_000, "16"))
    expect(base64.endsWith("=")).toBe(true)
    const plain = (await say({ voice: base64 })).body
    for (const voice of [
      base64.replaceAll("=", ""),
      base64.replaceAll("+", "-").replaceAll("/", "_"),
      base64.replace(/.{76}/g, "$&\r\n"),
      `data:audio/wav;base64,${base64}`,
      `data:audio/x-wav;codecs=1;base64,${base64}`,
    ]) {
      const reply = await say({ voice })
      expect([voice.slice(0, 30), reply.status]).toEqual([voice.slice(0, 30), 200])
      expect(reply.body.equals(plain)).toBe(true)
    }
  })

  it.each((["16", "24", "32f", "8", "32", "64", "8a", "8m"] as const).slice(0, runs(3, 8)))(
    "may be WAV of depth %s",
    async (depth) => {
      const { body, status } = await say({ voice: clip(wavBytes(man, 24_000, depth)) })
      expect(status).toBe(200)
      expect(body.length).toBeGreaterThan(20_000)
    },
  )

  it("may be stereo, or of another rate", async () => {
    const stereo = new wavefile.WaveFile()
    stereo.fromScratch(2, 24_000, "16", [man, man])
    const fast = new wavefile.WaveFile()
    fast.fromScratch(1, 24_000, "16", man)
    fast.toSampleRate(96_000)
    const slow = new wavefile.WaveFile()
    slow.fromScratch(1, 24_000, "16", man)
    slow.toSampleRate(8_000)
    for (const wav of [stereo, fast, slow]) {
      const { status } = await say({ voice: clip(wav.toBuffer()) })
      expect(status).toBe(200)
    }
  })

  it("streams like any voice, and whatever language it is said in", async () => {
    const voice = clip(wavBytes(woman, 24_000, "16"))
    for (const language of ["en", "de", "ja"]) {
      const [batch, stream] = await Promise.all([
        say({ voice, language }),
        say({ voice, language, stream: true }),
      ])
      expect([batch.status, stream.status]).toEqual([200, 200])
      expect(batch.body.equals(stream.body)).toBe(true)
    }
  })

  it("that was cut off is still a clip as far as it goes", async () => {
    const whole = wavBytes(man, 24_000, "16")
    expect((await say({ voice: clip(whole.subarray(0, whole.length >> 1)) })).status).toBe(200)
  })
})

describe("refused is", () => {
  /** So many samples of the clip, u8. */
  const voiced = (samples: number) => {
    const once = Uint8Array.from(man, (sample) => (sample >> 8) + 128)
    const all = new Uint8Array(samples)
    for (let at = 0; at < samples; at += once.length) all.set(once.subarray(0, samples - at), at)
    return all
  }
  /** More than the two that are allowed. */
  const minutes = runs(3, 10)
  const refused: ReadonlyArray<readonly [string, () => string]> = [
    ["a name", () => "af_bella"],
    ["a path", () => "/etc/passwd"],
    ["a path as a URL", () => "file:///etc/passwd"],
    ["a WAV of 0 s", () => clip(wavBytes(new Int16Array(0), 24_000, "16"))],
    ["a WAV of a tenth of a second", () => clip(wavBytes(man.slice(0, 2_400), 24_000, "16"))],
    ["silence", () => clip(wavBytes(new Int16Array(72_000), 24_000, "16"))],
    [`${minutes} minutes`, () => clip(wavOf(voiced(minutes * 60 * 8_000), 8_000, 1))],
    ["a WAV without its samples", () => clip(wavBytes(man, 24_000, "16").subarray(0, 44))],
    ["half a WAV header", () => `${clip(wavBytes(man, 24_000, "16").subarray(0, 30))}${"A".repeat(60)}`],
    ["a text", () => clip(Buffer.from("This is not audio. ".repeat(100)))],
    [
      "a picture",
      () =>
        clip(Buffer.concat([Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), Buffer.alloc(5_000, 7)])),
    ],
    ["noise without a container", () => clip(Buffer.from(man.buffer.slice(0, 50_000)))],
    [
      "a RIFF that lies about everything",
      () =>
        clip(
          Buffer.concat([
            Buffer.from("RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\x7f", "latin1"),
            Buffer.alloc(400, 0xff),
          ]),
        ),
    ],
    ["base64 with other characters in it", () => `${clip(wavBytes(man, 24_000, "16"))}!`],
    ["base64 that goes on behind its end", () => `${"A".repeat(600_000)}=${"A".repeat(600_000)}`],
    ["a data: URL of another kind", () => `data:text/html;base64,${clip(wavBytes(man, 24_000, "16"))}`],
  ]
  it.each(refused)("%s", async (_, voice) => {
    const given = voice()
    for (const stream of [false, true]) expectRefusal(await say({ voice: given, stream }), "voice: ")
  })

  it.each([[undefined], [null], [""], [" \n"], ["w".repeat(10_001)]])(
    "a clip with the transcript %j",
    async (voice_transcript) => {
      const voice = clip(wavBytes(man, 24_000, "16"))
      expectRefusal(await say({ voice, voice_transcript }), "voice_transcript: ")
      expectRefusal(await say({ voice: "http://203.0.113.1/a.wav", voice_transcript }), "voice_transcript: ")
    },
  )

  it("nothing of that for the default voice", async () => {
    expect((await say({ voice: "default", voice_transcript: undefined })).status).toBe(200)
  })
})

it("leaves nothing behind", () => untilIdle(node))

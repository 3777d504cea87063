// POST /v1/audio/speech on the built-in weights: the bytes of a reply in each format, whole and streamed.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { mp3Frames, mp3Recording } from "../../support/audio/Mp3Frames.ts"
import { decodeOggOpus, parseOggOpus } from "../../support/audio/OggPages.ts"
import { headerOf, jsonOf, type RawResponse } from "../../support/clients/RawHttp.ts"
import { inLong } from "../../support/groups/Runs.ts"
import {
  cloneModel,
  languages,
  presetModel,
  speak,
  speakWhenAdmitted,
} from "../../support/nodes/SpeechNode.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [presetModel, cloneModel] })
  // The first requests wait until the models have loaded.
  await Promise.all([say({ input: "One." }), say({ model: "tts-3b-ml", voice: "default", input: "One." })])
})
afterAll(() => node.stop())

const sentence =
  "Please open the window. It is warm in here; the sun has been out all day, and no one has left."

/** Replies are the same each time (checked below), so each is requested once. */
const said = new Map<string, Promise<RawResponse>>()
const fresh = (more: object): Promise<RawResponse> =>
  speakWhenAdmitted(node, { model: "tts-82m", voice: "af_bella", input: sentence, ...more })
const say = (more: object): Promise<RawResponse> => {
  const key = JSON.stringify(more)
  const reply = said.get(key) ?? fresh(more)
  said.set(key, reply)
  return reply
}

const seconds = (samples: number): number => samples / 24_000

/** Samples that a player plays, at 24 kHz. */
const playedSamples = (format: string, body: Buffer): number => {
  switch (format) {
    case "wav":
      return (body.length - 44) / 2
    case "mp3": {
      const { delay, frames, padding } = mp3Recording(body)
      return frames * 576 - delay - padding
    }
    case "opus":
      return decodeOggOpus(body).length / 2
    default:
      return body.length / 2
  }
}

describe("a batch reply", () => {
  it.each([
    ["wav", "audio/wav"],
    ["mp3", "audio/mpeg"],
  ])("%s is %s with its length, and not chunked", async (response_format, type) => {
    const reply = await say({ response_format })
    expect([reply.status, reply.complete]).toEqual([200, true])
    expect(headerOf(reply, "content-type")).toBe(type)
    expect(headerOf(reply, "content-length")).toBe(String(reply.body.length))
    expect(headerOf(reply, "transfer-encoding")).toBeUndefined()
    expect(headerOf(reply, "x-service-stream")).toBeUndefined()
    expect(headerOf(reply, "access-control-allow-origin")).toBe("*")
  })

  it("pcm is audio/pcm, chunked, without the headers of a stream", async () => {
    for (const more of [{ response_format: "pcm" }, { stream: false }]) {
      const reply = await say(more)
      expect([reply.status, reply.complete]).toEqual([200, true])
      expect(headerOf(reply, "content-type")).toBe("audio/pcm")
      expect(headerOf(reply, "transfer-encoding")).toBe("chunked")
      expect(headerOf(reply, "content-length")).toBeUndefined()
      expect(headerOf(reply, "x-service-stream")).toBeUndefined()
      expect(headerOf(reply, "x-service-sample-rate")).toBeUndefined()
      expect(headerOf(reply, "access-control-allow-origin")).toBe("*")
      expect(headerOf(reply, "server-timing")).toMatch(/queue;dur=[\d.]+, first;dur=[\d.]+, total;dur=/)
    }
  })

  it("is pcm when nothing is said about its format", async () => {
    expect((await say({})).body.equals((await say({ response_format: "pcm" })).body)).toBe(true)
    expect((await say({ response_format: null, stream: null, speed: null })).body.length).toBe(
      (await say({})).body.length,
    )
  })

  it("as wav is the pcm behind a header of 24 kHz, 16 bit, mono", async () => {
    const { body: wav } = await say({ response_format: "wav" })
    const { body: pcm } = await say({})
    expect(wav.subarray(44).equals(pcm)).toBe(true)
    expect(wav.toString("latin1", 0, 4)).toBe("RIFF")
    expect(wav.readUInt32LE(4)).toBe(wav.length - 8)
    expect(wav.toString("latin1", 8, 16)).toBe("WAVEfmt ")
    expect([wav.readUInt16LE(20), wav.readUInt16LE(22), wav.readUInt32LE(24)]).toEqual([1, 1, 24_000])
    expect([wav.readUInt32LE(28), wav.readUInt16LE(32), wav.readUInt16LE(34)]).toEqual([48_000, 2, 16])
    expect(wav.readUInt32LE(40)).toBe(pcm.length)
  })

  it("as mp3 is 128 kbit/s in every frame and knows its own length", async () => {
    const { body } = await say({ response_format: "mp3" })
    const frames = mp3Frames(body)
    expect(new Set(frames.map((frame) => JSON.stringify(frame)))).toEqual(
      new Set([JSON.stringify({ kbps: 128, rateHz: 24_000, mono: true })]),
    )
    const recording = mp3Recording(body)
    expect(recording.frames).toBe(frames.length - 1)
    expect(recording.sizeBytes).toBe(body.length)
    expect(playedSamples("mp3", body)).toBe((await say({})).body.length / 2)
  })

  it("is speech: loud enough, not clipped, of the text's length", async () => {
    const { body } = await say({})
    const samples = new Int16Array(body.buffer.slice(body.byteOffset, body.byteOffset + body.length))
    const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
    expect(peak).toBeGreaterThan(3_000)
    expect(peak).toBeLessThan(32_767)
    // 92 characters at the 60 to 80 ms a character of ordinary speech.
    expect(seconds(samples.length)).toBeGreaterThan(4)
    expect(seconds(samples.length)).toBeLessThan(10)
  })
})

describe("a streamed reply", () => {
  it.each([
    ["pcm", "audio/pcm"],
    ["opus", "audio/ogg; codecs=opus"],
  ])("%s is %s, chunked, and says that it streams", async (response_format, type) => {
    const reply = await say({ response_format, stream: true })
    expect([reply.status, reply.complete]).toEqual([200, true])
    expect(headerOf(reply, "content-type")).toBe(type)
    expect(headerOf(reply, "transfer-encoding")).toBe("chunked")
    expect(headerOf(reply, "content-length")).toBeUndefined()
    expect(headerOf(reply, "x-service-stream")).toBe("1")
    expect(headerOf(reply, "x-accel-buffering")).toBe("no")
    expect(headerOf(reply, "x-service-sample-rate")).toBe("24000")
    expect(headerOf(reply, "access-control-allow-origin")).toBe("*")
    expect(reply.chunkSizes.length).toBeGreaterThan(2)
  })

  it("of pcm is the batch reply, byte for byte, at any speed and of any voice", async () => {
    for (const more of [{}, { speed: 0.25 }, { speed: 4 }, { voice: "bm_george", speed: 1.37 }]) {
      const [batch, stream] = await Promise.all([say(more), say({ ...more, stream: true })])
      expect(batch.body.length).toBeGreaterThan(0)
      expect(batch.body.equals(stream.body)).toBe(true)
    }
  })

  it("of opus is one whole Ogg stream at 48 kHz that names its origin", async () => {
    const { body } = await say({ response_format: "opus", stream: true })
    const stream = parseOggOpus(body)
    expect(stream).toMatchObject({ ended: true, inputRateHz: 24_000, preSkip: 312 })
    const pcm = (await say({})).body.length / 2
    expect(Number(stream.endGranule) - stream.preSkip).toBe(pcm * 2)
  })

  it("begins with audio worth playing", async () => {
    const { chunkSizes } = await say({ stream: true })
    // A quarter of a second at least, and not the whole text.
    expect(chunkSizes[0]).toBeGreaterThanOrEqual(12_000)
    expect(chunkSizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(3 * chunkSizes[0]!)
  })
})

describe("durations", () => {
  it("agree within 30 ms across formats", inLong, async () => {
    const formats = [
      { response_format: "pcm" },
      { response_format: "wav" },
      { response_format: "mp3" },
      { response_format: "pcm", stream: true },
      { response_format: "opus", stream: true },
    ]
    for (const speed of [1, 2.5]) {
      const lengths = await Promise.all(
        formats.map(async (each) =>
          playedSamples(each.response_format, (await say({ ...each, speed })).body),
        ),
      )
      expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThan(0.03 * 24_000)
    }
  })

  it("follow the speed", async () => {
    const at = async (speed: number) => (await say({ speed })).body.length
    const ordinary = await at(1)
    for (const speed of [0.25, 0.5, 2, 4]) {
      expect((await at(speed)) / (ordinary / speed)).toBeGreaterThan(0.85)
      expect((await at(speed)) / (ordinary / speed)).toBeLessThan(1.15)
    }
  })
})

describe("voices", () => {
  it("are listed for a model", async () => {
    const get = (path: string) => node.fetch(path, { headers: { authorization: `Bearer ${node.keys.dev}` } })
    expect(await (await get("/v1/audio/voices?model=tts-82m")).json()).toEqual({
      model: "tts-82m",
      voices: presetModel.speech.voices,
      aliases: expect.objectContaining({ alloy: "af_sarah", onyx: "am_adam", fable: "bm_george" }),
      cloning: false,
      languages: ["en"],
    })
    expect(await (await get("/v1/audio/voices?model=tts-3b-ml")).json()).toEqual({
      model: "tts-3b-ml",
      voices: ["default"],
      aliases: expect.objectContaining({ alloy: "default", onyx: "default" }),
      cloning: true,
      languages,
    })
    const refused = await Promise.all(
      ["", "?model=", "?model=none"].map((query) => get(`/v1/audio/voices${query}`)),
    )
    expect(refused.map(({ status }) => status)).toEqual([400, 400, 404])
    expect((await node.fetch("/v1/audio/voices?model=tts-82m")).status).toBe(401)
  })

  it("all speak, each in its own way", async () => {
    const bodies = await Promise.all(
      (presetModel.speech.voices as ReadonlyArray<string>).map(async (voice) => {
        const reply = await say({ voice, input: "Good morning." })
        expect(reply.status).toBe(200)
        return reply.body.toString("base64")
      }),
    )
    expect(new Set(bodies).size).toBe(8)
  })

  it("of tts-82m ignore what only cloning needs", async () => {
    const { body } = await say({})
    const same = await say({ language: "xx", voice_transcript: "not me" })
    expect(same.status).toBe(200)
    expect(same.body.equals(body)).toBe(true)
  })
})

describe("tts-3b-ml", () => {
  const cloned = (more: object = {}) => say({ model: "tts-3b-ml", voice: "default", ...more })

  it("speaks ten languages, each differently, and English by itself", inLong, async () => {
    const bodies = await Promise.all(
      languages.map(async (language) => {
        const reply = await cloned({ language, input: "Radio Roma, 3 minuti" })
        expect([language, reply.status]).toEqual([language, 200])
        return reply.body.toString("base64")
      }),
    )
    // Japanese and Chinese read these letters by the same rules; the others differ.
    expect(new Set(bodies).size).toBeGreaterThanOrEqual(9)
    expect((await cloned({ input: "Radio Roma, 3 minuti" })).body.toString("base64")).toBe(bodies[0])
  })

  it("streams at speed 1.0, and at any speed in a batch", async () => {
    expect((await cloned({ stream: true, speed: 1 })).body.equals((await cloned()).body)).toBe(true)
    expect((await cloned({ speed: 2 })).status).toBe(200)
  })

  it(
    "answers with the same bytes each time, alone, beside others and after its engine was killed",
    inLong,
    async () => {
      const formats = [{}, { response_format: "mp3" }, { response_format: "opus", stream: true }]
      for (const more of formats) {
        const { body } = await cloned(more)
        const again = await Promise.all(
          Array.from({ length: 4 }, () => fresh({ model: "tts-3b-ml", voice: "default", ...more })),
        )
        for (const reply of again) expect(reply.body.equals(body)).toBe(true)
      }
      process.kill(node.gauges("tts-3b-ml").pid!, "SIGKILL")
      for (const more of formats) {
        const reply = await untilServed(() => fresh({ model: "tts-3b-ml", voice: "default", ...more }))
        expect(reply.body.equals((await cloned(more)).body)).toBe(true)
      }
    },
  )
})

/** An engine that was just killed may still fail the request. */
const untilServed = async (ask: () => Promise<RawResponse>): Promise<RawResponse> => {
  let reply = await ask()
  await eventually(async () => {
    if (reply.status === 200) return true
    expect([502, 503]).toContain(reply.status)
    reply = await ask()
    return false
  }, "the engine serves again")
  return reply
}

describe("text", () => {
  it("is cleaned before it is spoken", async () => {
    const plain = await say({ input: "Hello there, friend. How are you?" })
    for (const input of [
      '"Hello there, friend. How are you?"',
      "“Hello there, friend. How are you?”",
      "# Hello there, friend. How are you?",
      "**Hello** there, *friend*. How are `you`?",
      "```\nHello there, friend. How are you?\n```",
    ]) {
      expect((await say({ input })).body.equals(plain.body), input).toBe(true)
    }
  })

  it.each([
    ["tts-82m", "af_bella", 4096],
    ["tts-3b-ml", "default", 850],
  ])(
    "of %s (%s) may have %i characters after cleaning, counted in code points",
    async (model, voice, cap) => {
      // Pauses take no compute: the text is long and quickly spoken.
      const at = (length: number) => `Hi${", ".repeat((length - 4) / 2)}a.`
      expect(at(cap).length).toBe(cap)
      const status = async (input: string) => (await speak(node, { model, voice, input })).status
      expect(await status(at(cap))).toBe(200)
      expect(await status(`"${at(cap)}"`)).toBe(200)
      expect(await status(`**${at(cap).slice(0, -1)}**.`)).toBe(200)
      // Twice as many UTF-16 units as code points.
      expect(await status(`Hi ${"🙂".repeat(cap - 3)}`)).toBe(200)
      const refused = await speak(node, { model, voice, input: `${at(cap)}.` })
      expect(refused.status).toBe(413)
      expect(jsonOf(refused)).toEqual({ detail: `input: ${model} speaks at most ${cap} characters` })
      expect(await status("a".repeat(cap * 9))).toBe(413)
    },
  )
})

it("leaves nothing behind", () => untilIdle(node))

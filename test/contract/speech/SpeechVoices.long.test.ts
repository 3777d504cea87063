// Kokoro's voices of several languages, and mixtures of voices, over HTTP: the built-in weights under names of the published voices.
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { costOf } from "#domain/models/Money.ts"
import { audioUsage } from "#domain/models/Usage.ts"
import { loadEspeak } from "#engines/kokoro/EspeakLanguages.ts"
import { loadJapanese } from "#engines/kokoro/Japanese.ts"
import { loadMandarin } from "#engines/kokoro/Mandarin.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import {
  headerOf,
  jsonOf,
  type RawResponse,
  rawRequest,
  requestBytes,
} from "../../support/clients/RawHttp.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { presetModel, speak } from "../../support/nodes/SpeechNode.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const espeak = await Effect.runPromise(loadEspeak)
const withEspeak = onlyWhere(
  espeak !== undefined,
  "no eSpeak NG found; npm package @echogarden/espeak-ng-emscripten",
)

const asian = await Effect.runPromise(Effect.all([loadJapanese, loadMandarin]))
const withAsian = onlyWhere(
  !asian.includes(undefined),
  "no readings of Chinese and Japanese found; npm packages pinyin-pro and lindera-wasm-nodejs-ipadic",
)

const builtIn = (voice: string) =>
  fileURLToPath(new URL(`../../../models/kokoro-demo/voices/${voice}.bin`, import.meta.url))

/** Name → the built-in voice that it is. */
const files = {
  af_bella: "af_bella",
  af_sky: "af_sarah",
  bf_emma: "bf_emma",
  ef_dora: "af_sarah",
  em_alex: "am_adam",
  ff_siwis: "af_sarah",
  hf_alpha: "bf_emma",
  if_sara: "bf_isabella",
  jf_alpha: "af_sarah",
  jm_kumo: "am_adam",
  pf_dora: "af_bella",
  zf_xiaobei: "af_sarah",
  zm_yunxi: "am_adam",
}
const voices = Object.keys(files)
const folder = mkdtempSync(join(tmpdir(), "voices-"))

let node: TestNode
beforeAll(async () => {
  for (const [name, voice] of Object.entries(files)) cpSync(builtIn(voice), join(folder, `${name}.bin`))
  const many = {
    ...presetModel,
    id: "many",
    files: { ...presetModel.files, voices: { source: folder } },
    speech: {
      maxCharacters: 4096,
      voices,
      languages: ["en", "es", "fr", "hi", "it", "ja", "pt", "zh"],
      aliases: { amiga: "ef_dora" },
    },
  }
  node = await startNode({ models: [presetModel, many] })
  await Promise.all([say({}), say({ model: "tts-82m" })])
})
afterAll(async () => {
  await node.stop()
  rmSync(folder, { recursive: true })
})

const say = (more: object): Promise<RawResponse> =>
  speak(node, { model: "many", voice: "af_bella", input: "Hello.", ...more }, node.keys.credit)
const detailOf = (reply: RawResponse) => (jsonOf(reply) as { readonly detail: string }).detail

describe("a voice of another language", withEspeak, () => {
  it("is spoken by its own rules, with its language or without", async () => {
    for (const [voice, language] of [
      ["ef_dora", "es"],
      ["ff_siwis", "fr"],
      ["hf_alpha", "hi"],
      ["if_sara", "it"],
      ["pf_dora", "pt"],
    ]) {
      const one = await say({ voice, input: "ciao 25 %" })
      const other = await say({ voice, language, input: "ciao 25 %" })
      expect([one.status, other.status]).toEqual([200, 200])
      expect(one.body.length).toBeGreaterThan(24_000)
      expect(one.body.equals(other.body)).toBe(true)
    }
    // The same style with English and with Spanish rules.
    const english = await say({ voice: "af_sky", input: "hola 25" })
    expect((await say({ voice: "ef_dora", input: "hola 25" })).body.equals(english.body)).toBe(false)
  })

  it("is refused with a language that is not its own, by its alias too", async () => {
    const reply = await say({ voice: "ef_dora", language: "fr" })
    expect([reply.status, detailOf(reply)]).toEqual([400, "language: must be es, the language of ef_dora"])
    expect(detailOf(await say({ voice: "amiga", language: "en" }))).toContain("ef_dora")
    expect((await say({ voice: "amiga", language: "es" })).status).toBe(200)
  })

  it("is ignored by a model of one language", async () => {
    expect((await say({ model: "tts-82m", language: "de" })).status).toBe(200)
  })

  it("speaks digits, signs and pictures of other scripts, or says that there is nothing to speak", async () => {
    for (const input of ["٣٤", "२५", "😀 hola", "\u202eabc\u202c", "a".repeat(4096).slice(0, 300)]) {
      for (const voice of ["ef_dora", "ff_siwis", "hf_alpha", "if_sara", "pf_dora"]) {
        const { body, status } = await say({ voice, input })
        expect([input.slice(0, 20), voice, status]).toEqual([input.slice(0, 20), voice, 200])
        expect(body.length).toBeGreaterThan(4_800)
      }
    }
    expect((await say({ voice: "ef_dora", input: "😀🎉" })).status).toBe(502)
  })
})

describe("a Chinese or Japanese voice", withAsian, () => {
  const own = { zf_xiaobei: "你好，世界。", jf_alpha: "こんにちは、世界。" }

  it("is spoken by its own rules, with its language or without, whole and as a stream", async () => {
    for (const [voice, input] of Object.entries(own)) {
      const one = await say({ voice, input })
      const other = await say({ voice, input, language: voice.startsWith("z") ? "zh" : "ja" })
      const stream = await say({ voice, input, stream: true })
      expect([one.status, other.status, stream.status]).toEqual([200, 200, 200])
      expect(one.body.length).toBeGreaterThan(24_000)
      expect(one.body.equals(other.body) && one.body.equals(stream.body)).toBe(true)
    }
    // The same style and characters in two languages.
    const [chinese, japanese] = await Promise.all(
      Object.keys(own).map((voice) => say({ voice, input: "世界" })),
    )
    expect(chinese!.body.equals(japanese!.body)).toBe(false)
  })

  it("is refused with a language that is not its own, and mixed with one of another", async () => {
    const reply = await say({ voice: "zf_xiaobei", language: "ja", input: "你好" })
    expect([reply.status, detailOf(reply)]).toEqual([400, "language: must be zh, the language of zf_xiaobei"])
    const mixture = await say({ voice: "zf_xiaobei+jf_alpha", input: "世界" })
    expect([mixture.status, detailOf(mixture)]).toEqual([
      400,
      "voice: zf_xiaobei and jf_alpha speak different languages and cannot be mixed",
    ])
    expect((await say({ voice: "zf_xiaobei+zm_yunxi(2)", input: "世界" })).status).toBe(200)
    expect((await say({ voice: "jf_alpha+jm_kumo", input: "世界" })).status).toBe(200)
  })

  it("speaks numbers, English words, digits of other scripts and text with marks of direction", async () => {
    for (const input of [
      "2024-12-25",
      "hello",
      "GPT-4",
      "٣٤",
      "😀好",
      "\u202e世界\u202c",
      "世".repeat(300),
    ]) {
      for (const voice of Object.keys(own)) {
        const { body, status } = await say({ voice, input })
        expect([input.slice(0, 20), voice, status]).toEqual([input.slice(0, 20), voice, 200])
        expect(body.length).toBeGreaterThan(4_800)
      }
    }
  })

  it("refuses pictures and scripts that it cannot read", async () => {
    for (const voice of Object.keys(own))
      for (const input of ["😀🎉", "한국어", "привет"]) {
        const reply = await say({ voice, input })
        expect([input, reply.status, detailOf(reply)]).toEqual([input, 502, "TTS backend error"])
      }
  })
})

describe("a mixture", () => {
  it("sounds like neither of its voices, and by its weights alone", async () => {
    const [bella, sky, both, weighted, alone] = await Promise.all(
      ["af_bella", "af_sky", "af_bella+af_sky", "af_bella(2)+af_sky(2.0)", "af_bella(0.5)"].map((voice) =>
        say({ voice }),
      ),
    )
    expect([both, weighted, alone].map((reply) => reply?.status)).toEqual([200, 200, 200])
    expect(both!.body.equals(bella!.body)).toBe(false)
    expect(both!.body.equals(sky!.body)).toBe(false)
    expect(weighted!.body.equals(both!.body)).toBe(true)
    expect(alone!.body.equals(bella!.body)).toBe(true)
  })

  it("is streamed, and takes aliases", async () => {
    const { body } = await say({ voice: "af_bella+bf_emma(2)" })
    const stream = await say({ voice: "af_bella+bf_emma(2)", stream: true })
    expect([stream.status, stream.body.equals(body)]).toEqual([200, true])
    expect((await say({ model: "tts-82m", voice: "alloy+nova" })).status).toBe(200)
  })

  it.each([
    ["af_bella+af_nobody(2)", "voice: the mixture has an unknown voice, af_nobody"],
    ["af_bella(0)+af_sky(0)", "voice: the weights of af_bella(0)+af_sky(0) sum to 0"],
    ["af_bella(-1)", 'voice: "af_bella(-1)" must be a voice, or one with a weight such as af_bella(2)'],
    ["af_bella+ef_dora", "voice: af_bella and ef_dora speak different languages and cannot be mixed"],
  ])("%s is 400", async (voice, detail) => {
    const reply = await say({ voice })
    expect([reply.status, detailOf(reply)]).toEqual([400, detail])
    expect(headerOf(reply, "x-service-stream")).toBeUndefined()
  })

  it("that is longer than a name may be is an unknown voice", async () => {
    expect((await say({ voice: "af_bella+".repeat(100) })).status).toBe(502)
  })

  it("is listed nowhere and costs what one voice costs", async () => {
    const credits = () =>
      node.run(
        Effect.gen(function* () {
          yield* (yield* UsageLedger).flush
          return (yield* (yield* Accounts).showOrg("credit")).creditsMicroDollars
        }),
      )
    const before = await credits()
    const { body } = await say({ voice: "af_bella+af_sky" })
    const cost = before - (await credits())
    const samples = body.length / 2
    expect(cost).toBe(costOf(presetModel.price!, audioUsage("speech", samples, 24_000)))
    const list = await rawRequest(
      node.port,
      requestBytes("GET", "/v1/audio/voices?model=many", { authorization: `Bearer ${node.keys.credit}` }),
    )
    expect(jsonOf(list)).toMatchObject({
      voices,
      languages: ["en", "es", "fr", "hi", "it", "ja", "pt", "zh"],
    })
  })
})

// The demonstration voices, through the whole adapter: level, joins, speed, and unusual texts.
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import fc from "fast-check"
import { kokoroOnnx } from "#engines/kokoro/KokoroOnnx.ts"
import type { SpeechEngine } from "#engines/protocol/Engine.ts"
import { ceiling } from "#engines/shared/speech/Pcm.ts"
import { cleannessOf } from "../../../models/eval/VoiceProfile.ts"
import { demoFiles, openSpeech, say, speechOutlet, speechRequest } from "./speech.ts"

const sentence =
  "Hello, how are you today? My name is Anna. It costs $3.50, and it is 3:45 pm. My brother bought a small red car; " +
  "he drove to the mountains, where the weather is cold and rainy."

let engine: SpeechEngine
beforeAll(async () => {
  const scope = Scope.makeUnsafe()
  engine = await Effect.runPromise(openSpeech(kokoroOnnx, demoFiles).pipe(Scope.provide(scope)))
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
})

const speakNow = (text: string, more = {}) => Effect.runPromise(say(engine, speechRequest(text, more)))

describe("demonstration voices", () => {
  it("are the eight of the operating contract", () => {
    expect(engine.facts).toMatchObject({ languages: ["en"] })
    expect(engine.facts.voices).toEqual(
      "af_bella af_sarah am_adam am_michael bf_emma bf_isabella bm_george bm_lewis".split(" "),
    )
  })

  it("have no clicks, no offset and no peak above −1 dBFS, and are equally loud", async () => {
    const loudness: Array<number> = []
    for (const preset of engine.facts.voices) {
      const { samples, outlet } = await speakNow(sentence, { voice: { preset } })
      let peak = 0
      let sum = 0
      for (const sample of samples) {
        peak = Math.max(peak, Math.abs(sample))
        sum += sample
      }
      expect(peak).toBeLessThanOrEqual(Math.ceil(ceiling * 32767))
      // Loud enough: the peak is within 6 dB of the ceiling.
      expect(peak).toBeGreaterThan(0.5 * ceiling * 32767)
      // Offset under −54 dBFS.
      expect(Math.abs(sum / samples.length)).toBeLessThan(0.002 * 32767)
      // Every unit begins and ends at zero, so no join can click; the first piece is two units.
      for (const [i, { samples: unit }] of outlet.units.entries()) {
        if (i !== 1) expect(Math.abs(unit[0]!)).toBeLessThanOrEqual(1)
        if (i !== 0) expect(Math.abs(unit.at(-1)!)).toBeLessThanOrEqual(1)
      }
      expect(samples.length / 24_000).toBeGreaterThan(9)
      expect(samples.length / 24_000).toBeLessThan(16)
      loudness.push(cleannessOf(samples).loudnessDbfs)
    }
    expect(Math.max(...loudness) - Math.min(...loudness)).toBeLessThan(2)
  })

  it("say the same bytes twice, as a stream and as a batch reply", async () => {
    const { samples } = await speakNow(sentence, { priority: "stream" })
    const [again, other, batch] = await Promise.all([
      speakNow(sentence),
      speakNow("Something else meanwhile, at its own pace.", { voice: { preset: "bm_lewis" } }),
      speakNow(sentence, { priority: "batch" }),
    ])
    expect(again.samples).toEqual(samples)
    expect(batch.samples).toEqual(samples)
    expect(other.samples).not.toEqual(samples)
  })

  it("begin with a short piece, so that sound comes early", async () => {
    const { outlet } = await speakNow(sentence)
    expect(outlet.units[0]!.samples.length / 24_000).toBeLessThan(4)
    expect(outlet.units.length).toBeGreaterThan(3)
  })

  it("speak in proportion to speed", async () => {
    const seconds = async (speed: number) => (await speakNow(sentence, { speed })).samples.length / 24_000
    const normal = await seconds(1)
    for (const speed of [0.5, 4, 0.25, 0.8, 1.5, 2]) {
      const ratio = (await seconds(speed)) / (normal / speed)
      expect([speed, ratio > 0.95 && ratio < 1.05]).toEqual([speed, true])
    }
  })

  it("survive every text, and speak or say why not", async () => {
    const hostile: ReadonlyArray<readonly [string, boolean]> = [
      ["😀".repeat(4096), false],
      ["\u0000\u0007\u001b\u0085", false],
      ["\u001b[31m", true],
      ["\ud800\udfff\udc00", false],
      ["\ud83d alone \ude00", true],
      ["\u202e\u2066right to left\u2069\u202c", true],
      ["مرحبا بالعالم", false],
      ["مرحبا hello مرحبا", true],
      ["你好".repeat(2048), false],
      ["a".repeat(1000), true],
      ["pneumono".repeat(100), true],
      ["a\u0301\u0302\u0303".repeat(100), true],
      ["!?".repeat(2048), false],
      ["((((((“““hello”””))))))", true],
      ["9".repeat(200), true],
      ["1/2/3-4:5.6,7%$€ 0x1F 1e9 +-*/=", true],
      ["<script>alert('x')</script> {{y}} $ `z`", true],
      [" \n\r\t\u00a0\u3000hello\u2028there\u2029", true],
      [".".repeat(4000), false],
      ["'".repeat(100), false],
      ["-".repeat(100), false],
      ["[[h@l'oU]]", true],
    ]
    for (const [text, speaks] of hostile) {
      const exit = await Effect.runPromiseExit(say(engine, speechRequest(text, { speed: 4 })))
      const problem = Exit.isFailure(exit) ? Effect.runSync(Effect.flip(exit)).field : "none"
      expect([text.slice(0, 20), problem]).toEqual([text.slice(0, 20), speaks ? "none" : "input"])
    }
  })

  it("survive random texts", () =>
    fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 60 }), async (text) => {
        const outlet = speechOutlet()
        const exit = await Effect.runPromiseExit(engine.synthesize(speechRequest(text, { speed: 4 }), outlet))
        if (Exit.isSuccess(exit)) expect(exit.value.samples).toBeGreaterThan(0)
        else
          expect(Effect.runSync(Effect.flip(exit))).toMatchObject({ reason: "InvalidInput", field: "input" })
      }),
      { numRuns: 60 },
    ))

  it("speak a whole long word and a whole long text", async () => {
    const word = (letters: number) => speakNow("ab".repeat(letters / 2), { speed: 4 })
    const short = (await word(200)).samples.length
    const long = (await word(800)).samples.length
    expect(long / short).toBeGreaterThan(3.5)
    const once = (await speakNow("The fox went to town. ", { speed: 4 })).samples.length
    const often = (await speakNow("The fox went to town. ".repeat(20), { speed: 4 })).samples.length
    expect(often / once).toBeGreaterThan(17.5)
  })
})

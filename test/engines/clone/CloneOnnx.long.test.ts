// The cloning adapter: it follows the clip, gives the same bytes every time, and refuses graphs that could not.
import { createHash } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { cloneOnnx } from "#engines/clone/CloneOnnx.ts"
import { kokoroOnnx } from "#engines/kokoro/KokoroOnnx.ts"
import type { SpeechEngine, SynthesizeRequest } from "#engines/protocol/Engine.ts"
import { cleannessOf } from "../../../models/eval/VoiceProfile.ts"
import { cloneFiles, demoFiles, openSpeech, say, speechOutlet, speechRequest } from "../kokoro/speech.ts"
import { toyFolder } from "../kokoro/toyKokoro.ts"

const sentence = "The weather is cold tonight, and my brother drove home. He was glad to see us all again."

/** The cloning engine, and the preset voices, of which clips are made. */
class Clones extends Context.Service<Clones, SpeechEngine>()("test/Clones") {
  static readonly layer = Layer.effect(Clones, openSpeech(cloneOnnx, cloneFiles))
}
class Presets extends Context.Service<Presets, SpeechEngine>()("test/Presets") {
  static readonly layer = Layer.effect(Presets, openSpeech(kokoroOnnx, demoFiles))
}

const digest = (samples: Int16Array): string =>
  createHash("sha256")
    .update(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength))
    .digest("hex")

/** A clip of a preset voice, every second sample dropped where a lower rate is asked for. */
const clipOf = Effect.fnUntraced(function* (preset: string) {
  const { samples } = yield* say(
    yield* Presets,
    speechRequest("My brother bought a small red car and drove to the mountains in the cold.", {
      voice: { preset },
    }),
  )
  return { clip: samples, rateHz: 24_000, transcript: "my brother bought a small red car" }
})

/** Median pitch of voiced 40 ms frames, Hz, by autocorrelation. */
const pitch = (samples: Int16Array): number => {
  const found: Array<number> = []
  for (let start = 0; start + 1400 < samples.length; start += 1920) {
    let energy = 0
    for (let i = 0; i < 960; i++) energy += samples[start + i]! ** 2
    if (Math.sqrt(energy / 960) < 1500) continue
    let best = 0.5
    let lag = 0
    for (let candidate = 60; candidate < 400; candidate++) {
      let cross = 0
      let shifted = 0
      for (let i = 0; i < 960; i += 3) {
        cross += samples[start + i]! * samples[start + i + candidate]!
        shifted += samples[start + i + candidate]! ** 2
      }
      const likeness = cross / Math.sqrt((energy / 3) * shifted + 1)
      if (likeness > best * 1.03) {
        best = likeness
        lag = candidate
      }
    }
    if (lag > 0) found.push(24_000 / lag)
  }
  found.sort((a, b) => a - b)
  return found[found.length >> 1] ?? 0
}

const bytes = (engine: SpeechEngine, request: SynthesizeRequest) =>
  Effect.map(say(engine, request), ({ samples }) => digest(samples))

layer(Layer.merge(Clones.layer, Presets.layer))("style-clone-onnx", (it) => {
  it.effect("follows the pitch of the clip, and is as loud as every voice however loud the clip is", () =>
    Effect.gen(function* () {
      const engine = yield* Clones
      expect(engine.facts).toMatchObject({ voices: ["default"] })
      for (const preset of ["am_adam", "af_sarah"]) {
        const voice = yield* clipOf(preset)
        const { samples } = yield* say(engine, speechRequest(sentence, { voice }))
        const ratio = pitch(samples) / pitch(voice.clip)
        expect(ratio).toBeGreaterThan(0.9)
        expect(ratio).toBeLessThan(1.1)
        // The target of the graph's level is −21 dBFS.
        expect(Math.abs(cleannessOf(samples).loudnessDbfs + 21)).toBeLessThan(1)
        const quiet = { ...voice, clip: voice.clip.map((sample) => sample / 20) }
        const again = yield* say(engine, speechRequest(sentence, { voice: quiet }))
        expect(Math.abs(cleannessOf(again.samples).loudnessDbfs + 21)).toBeLessThan(1)
      }
    }),
  )

  it.effect("gives the same bytes again, whatever runs beside it, and after a restart", () =>
    Effect.gen(function* () {
      const voice = yield* clipOf("am_michael")
      const requests = [
        speechRequest(sentence, { voice }),
        speechRequest(sentence, { voice: { preset: "default" } }),
        speechRequest("Something shorter.", { voice }),
      ]
      const lasting = yield* Clones
      const first = yield* Effect.forEach(requests, (request) => bytes(lasting, request))
      expect(new Set(first).size).toBe(3)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const engine = yield* openSpeech(cloneOnnx, cloneFiles)
          const crowd = [...requests, ...requests, ...requests].reverse()
          const again = yield* Effect.forEach(crowd, (request) => bytes(engine, request), {
            concurrency: "unbounded",
          })
          expect(again.reverse()).toEqual([...first, ...first, ...first])
        }),
      )
    }),
  )

  it.effect("accepts any transcript and needs none", () =>
    Effect.gen(function* () {
      const engine = yield* Clones
      const voice = yield* clipOf("bf_emma")
      const one = yield* bytes(engine, speechRequest(sentence, { voice }))
      const other = yield* bytes(engine, speechRequest(sentence, { voice: { ...voice, transcript: "" } }))
      expect(other).toBe(one)
    }),
  )

  it.effect("refuses graphs that draw random numbers", () =>
    Effect.gen(function* () {
      for (const random of [{ random: true }, { randomEncoder: true }]) {
        const error = yield* Effect.flip(openSpeech(cloneOnnx, yield* toyFolder(random)))
        expect(error.reason).toBe("LoadFailed")
        expect(error.detail).toContain("draws random numbers")
      }
      yield* openSpeech(cloneOnnx, yield* toyFolder())
      // The preset adapter does not guarantee repeatable audio.
      yield* openSpeech(kokoroOnnx, yield* toyFolder({ random: true }))
    }),
  )

  it.effect("says what is wrong with a request before anything starts", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(cloneOnnx, yield* toyFolder())
      const ok = { voice: { preset: "default" } }
      const silent = { clip: new Int16Array(48_000), rateHz: 24_000, transcript: "" }
      for (const [request, field] of [
        [speechRequest("Hello.", { voice: { preset: "af_bella" } }), "voice"],
        [speechRequest("Hello.", { voice: silent }), "voice"],
        [speechRequest("Hello.", { ...ok, language: "xx" }), "language"],
        [speechRequest("😀", ok), "input"],
        [speechRequest("Hello.", { ...ok, speed: 5 }), "speed"],
      ] as const) {
        const outlet = speechOutlet()
        const error = yield* Effect.flip(engine.synthesize(request, outlet))
        expect(error).toMatchObject({ reason: "InvalidInput", field })
        expect(outlet.startedWith).toEqual([])
      }
    }),
  )
})

// The adapter against random-weight graphs with the published names: loading, refusals, cancelling, pausing.
import { writeFile } from "node:fs/promises"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { kokoroOnnx } from "#engines/kokoro/KokoroOnnx.ts"
import { openSpeech, say, speechOutlet, speechRequest } from "./speech.ts"
import { samplesPerSymbol, toyFolder } from "./toyKokoro.ts"

const toy = { voice: { preset: "af_toy" } }
const long = "One day the fox went to town. ".repeat(12)

describe("kokoro-onnx", () => {
  it.effect("loads both variants of the published graph, with the same result", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(kokoroOnnx, yield* toyFolder())
      const older = yield* openSpeech(
        kokoroOnnx,
        yield* toyFolder({ ids: "tokens", audio: "audio", duration: true }),
      )
      const unnamed = yield* openSpeech(kokoroOnnx, yield* toyFolder({ audio: "output_0", duration: true }))
      const { samples, end, outlet } = yield* say(engine, speechRequest(long, toy))
      expect(end.samples).toBe(samples.length)
      expect(samples.length).toBeGreaterThan(300 * samplesPerSymbol)
      expect(outlet.startedWith).toHaveLength(1)
      expect((yield* say(older, speechRequest(long, toy))).samples).toEqual(samples)
      expect((yield* say(unnamed, speechRequest(long, toy))).samples).toEqual(samples)
      expect(engine.facts.voices).toEqual(["af_toy", "bm_toy"])
      expect((yield* say(engine, speechRequest(long, { voice: { preset: "bm_toy" } }))).samples).not.toEqual(
        samples,
      )
    }),
  )

  it.effect("takes whole speeds only where the graph does", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(kokoroOnnx, yield* toyFolder({ speed: "int64" }))
      expect(
        (yield* say(engine, speechRequest("Hello.", { ...toy, speed: 2 }))).samples.length,
      ).toBeGreaterThan(0)
      const error = yield* Effect.flip(say(engine, speechRequest("Hello.", { ...toy, speed: 1.5 })))
      expect(error).toMatchObject({ reason: "InvalidInput", field: "speed" })
    }),
  )

  it.effect("says what is wrong with a request before anything starts", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(kokoroOnnx, yield* toyFolder())
      const clip = { clip: new Int16Array(48_000), rateHz: 24_000, transcript: "" }
      for (const [request, field] of [
        [speechRequest("Hello.", { voice: { preset: "af_nobody" } }), "voice"],
        [speechRequest("Hello.", { voice: { preset: "__proto__" } }), "voice"],
        [speechRequest("Hello.", { voice: clip }), "voice"],
        [speechRequest("😀🎉 \u200b", toy), "input"],
        [speechRequest(" \n\t…!?", toy), "input"],
        [speechRequest("Hello.", { ...toy, speed: 0.2 }), "speed"],
        [speechRequest("Hello.", { ...toy, speed: Number.NaN }), "speed"],
      ] as const) {
        const outlet = speechOutlet()
        const error = yield* Effect.flip(engine.synthesize(request, outlet))
        expect(error).toMatchObject({ reason: "InvalidInput", field })
        expect(outlet.startedWith).toEqual([])
      }
    }),
  )

  it.effect("fails to load with the file and the reason", () =>
    Effect.gen(function* () {
      const files = yield* toyFolder()
      const load = (changed: Readonly<Record<string, string>>, options = {}) =>
        Effect.map(Effect.flip(openSpeech(kokoroOnnx, { ...files, ...changed }, options)), (error) => {
          expect(error.reason).toBe("LoadFailed")
          // Error messages must not contain folders of the machine.
          expect(error.detail).not.toContain(files.voices)
          return error.detail
        })
      expect(yield* load({ model: files.tokenizer })).toContain("tokenizer.json")
      expect(yield* load({ model: `${files.model}.gone` })).toContain("model.onnx.gone")
      expect(yield* load({ model: files.styleEncoder })).toContain("no input named input_ids or tokens")
      expect(yield* load({ tokenizer: files.model })).toContain("symbol table")
      expect(yield* load({}, { voices: ["af_else"] })).toContain("af_else")
      expect(yield* load({}, { slots: 0 })).toContain("slots")
      const { voices: _, ...without } = files
      expect((yield* Effect.flip(openSpeech(kokoroOnnx, without))).detail).toContain("voices")
      yield* Effect.promise(() => writeFile(files.tokenizer, JSON.stringify({ model: { vocab: { $: 0 } } })))
      expect(yield* load({})).toContain("pronounced")
    }),
  )

  it.effect("stops at the next piece when its request is cancelled, and serves the next one", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(kokoroOnnx, yield* toyFolder(), { maxSymbols: 60 })
      const outlet = speechOutlet()
      const third = yield* Deferred.make<void>()
      outlet.onPush = () => {
        if (outlet.units.length === 3) Deferred.doneUnsafe(third, Effect.void)
      }
      const fiber = yield* Effect.forkChild(engine.synthesize(speechRequest(long, toy), outlet))
      yield* Deferred.await(third)
      yield* Fiber.interrupt(fiber)
      const heard = outlet.units.length
      const { samples } = yield* say(engine, speechRequest("Next one, please.", toy))
      expect(samples.length).toBeGreaterThan(0)
      expect(outlet.units.length).toBe(heard)
      // A piece and its pause at most after the third unit.
      expect(heard).toBeLessThanOrEqual(5)
    }),
  )

  it.effect("waits between pieces while its reader is behind, and loses nothing", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(kokoroOnnx, yield* toyFolder(), { maxSymbols: 60 })
      const whole = yield* say(engine, speechRequest(long, toy))
      const outlet = speechOutlet()
      const paused = yield* Deferred.make<void>()
      outlet.onPush = () => {
        if (outlet.units.length !== 3) return
        outlet.pause()
        Deferred.doneUnsafe(paused, Effect.void)
      }
      const fiber = yield* Effect.forkChild(engine.synthesize(speechRequest(long, toy), outlet))
      yield* Deferred.await(paused)
      // Another request is served while this one waits: it does not hold the graph.
      yield* say(engine, speechRequest(long, toy))
      expect(outlet.units.length).toBeLessThanOrEqual(4)
      outlet.resume()
      const end = yield* Fiber.join(fiber)
      expect(end.samples).toBe(whole.end.samples)
    }),
  )
})

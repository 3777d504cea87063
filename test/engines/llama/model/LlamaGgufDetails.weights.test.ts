// The built-in text model through the whole adapter, asked for more than text: log probabilities, biases, several replies.
import { fileURLToPath } from "node:url"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { TextEngine } from "#engines/protocol/Engine.ts"
import {
  generateText,
  openText,
  startText,
  textOf,
  textRequest,
} from "../../../support/engines/EngineHarness.ts"

import { openToy } from "../../../support/engines/ToyEngine.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))
const slots = 6

class Demo extends Context.Service<Demo, TextEngine>()("test/Demo") {
  static readonly layer = Layer.effect(Demo, openText(llamaGguf, { weights }, { contextTokens: 1024, slots }))
}

const question = "Tell me a story about a robot."
const sampled = (seed: number) => ({ maxTokens: 30, sampling: { temperature: 1.1, seed } })

layer(Demo.layer, { excludeTestServices: true })("the built-in text model", (it) => {
  it.effect("log probabilities: those of a greedy reply are the largest, and do not change its text", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const plain = yield* generateText(engine, textRequest("What is the capital of Italy?"))
      const scored = yield* generateText(
        engine,
        textRequest("What is the capital of Italy?", { logprobs: 3 }),
      )
      expect(scored.text).toBe(plain.text)
      expect(scored.end).toEqual(plain.end)
      const logprobs = scored.deltas.flatMap(({ detail }) => detail?.logprobs ?? [])
      expect(logprobs).toHaveLength(plain.end.completionTokens)
      for (const { logprob, token, top } of logprobs) {
        expect(top).toHaveLength(3)
        expect(top[0]).toMatchObject({ token, logprob })
        const mass = top.reduce((sum, one) => sum + Math.exp(one.logprob), 0)
        expect(mass).toBeLessThan(1.0001)
      }
    }),
  )

  it.effect("a bias excludes a token, and unknown tokens are refused", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const request = textRequest("What is the capital of Italy?", { maxTokens: 1 })
      const [first] = (yield* generateText(engine, { ...request, logprobs: 1 })).deltas
      const changes = Effect.fnUntraced(function* (from: number, to: number) {
        const logitBias = Array.from({ length: to - from }, (_, at) => [from + at, -100] as const)
        return (yield* generateText(engine, { ...request, logitBias })).text !== first!.text
      })
      // The only token that has an effect is the one that was the most likely.
      let [from, to] = [0, 2048]
      while (to - from > 1) {
        const middle = (from + to) >> 1
        const isBelow = yield* changes(from, middle)
        expect(yield* changes(middle, to)).toBe(!isBelow)
        if (isBelow) to = middle
        else from = middle
      }
      const refused = yield* Effect.flip(generateText(engine, { ...request, logitBias: [[1e9, 1]] }))
      expect(refused).toMatchObject({ reason: "InvalidInput", field: "logit_bias" })
    }),
  )

  it.effect("a reply does not end by itself before its least length", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const { end } = yield* generateText(engine, textRequest("What is 7 + 5?", { minTokens: 30 }))
      expect(end.completionTokens).toBeGreaterThanOrEqual(30)
    }),
  )

  it.effect("several replies share their prompt and are those of single requests with the next seeds", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const singles = []
      for (let reply = 0; reply < slots; reply++)
        singles.push(yield* generateText(engine, textRequest(question, sampled(7 + reply))))
      const all = yield* generateText(engine, textRequest(question, { ...sampled(7), replies: slots }))
      const texts = singles.map((_, reply) =>
        all.deltas
          .filter(({ detail }) => (detail?.reply ?? 0) === reply)
          .map(({ text }) => text)
          .join(""),
      )
      expect(texts).toEqual(singles.map(({ text }) => text))
      expect(all.end.finishReasons).toEqual(singles.map(({ end }) => end.finishReason))
      expect(all.end.completionTokens).toBe(singles.reduce((sum, { end }) => sum + end.completionTokens, 0))
      expect(all.deltas.at(-1)?.completionTokens).toBe(all.end.completionTokens)
    }),
  )

  it.effect("more replies than sequences are refused, and the best of several is the most likely one", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const refused = yield* Effect.flip(generateText(engine, textRequest(question, { replies: slots + 1 })))
      expect(refused).toMatchObject({ reason: "InvalidInput", field: "n" })
      expect(refused.detail).toContain(String(slots))
      const means = []
      for (let reply = 0; reply < 4; reply++) {
        const { deltas, text } = yield* generateText(
          engine,
          textRequest(question, { ...sampled(20 + reply), logprobs: 0 }),
        )
        const logprobs = deltas.flatMap(({ detail }) => detail?.logprobs ?? [])
        means.push({ text, mean: logprobs.reduce((sum, { logprob }) => sum + logprob, 0) / logprobs.length })
      }
      means.sort((a, b) => b.mean - a.mean)
      const best = yield* generateText(
        engine,
        textRequest(question, { ...sampled(20), replies: 2, bestOf: 4 }),
      )
      const textOfReply = (reply: number) =>
        best.deltas
          .filter(({ detail }) => (detail?.reply ?? 0) === reply)
          .map(({ text }) => text)
          .join("")
      expect([textOfReply(0), textOfReply(1)]).toEqual(means.slice(0, 2).map(({ text }) => text))
    }),
  )

  it.effect("requests for several replies and for one end, however many come, and a cancel frees all", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const requests = Array.from({ length: 24 }, (_, at) =>
        textRequest(question, { ...sampled(at), replies: 1 + (at % slots) }),
      )
      const cancelled = yield* startText(engine, textRequest(question, { ...sampled(1), replies: slots }))
      const all = yield* Effect.forkChild(
        Effect.all(
          requests.map((request) => generateText(engine, request)),
          { concurrency: "unbounded" },
        ),
        { startImmediately: true },
      )
      yield* cancelled.reached(9)
      yield* Fiber.interrupt(cancelled.fiber)
      const ends = yield* Fiber.join(all)
      expect(ends.map(({ end }) => end.finishReasons?.length ?? 1)).toEqual(
        requests.map(({ replies }) => replies),
      )
      expect(textOf(cancelled.outlet)).not.toBe("")
    }),
  )

  it.effect(
    "an echo comes first and has no tokens; a suffix needs tokens that this model does not have",
    () =>
      Effect.gen(function* () {
        const engine = yield* Demo
        const plain = yield* generateText(engine, textRequest({ text: "Once upon a time" }, { maxTokens: 6 }))
        const echoed = yield* generateText(
          engine,
          textRequest({ text: "Once upon a time" }, { maxTokens: 6, echo: true }),
        )
        expect(echoed.text).toBe(`Once upon a time${plain.text}`)
        expect(echoed.end).toEqual(plain.end)
        expect(echoed.deltas[0]).toEqual({ text: "Once upon a time", completionTokens: 0 })
        const refused = yield* Effect.flip(generateText(engine, textRequest({ text: "a" }, { suffix: "b" })))
        expect(refused).toMatchObject({ reason: "InvalidInput", field: "suffix" })
      }),
  )
})

layer(Layer.empty)("node-llama-cpp's binding", (it) => {
  it.effect("refuses what needs the logits, and generates several replies", () =>
    Effect.gen(function* () {
      const engine = yield* openText(
        llamaGguf,
        { weights },
        { contextTokens: 512, slots: 3, native: "addon" },
      )
      const refused = yield* Effect.flip(generateText(engine, textRequest(question, { logprobs: 1 })))
      expect(refused).toMatchObject({ reason: "InvalidInput", field: "logprobs" })
      expect(refused.detail).toContain("options.native")
      const all = yield* generateText(engine, textRequest(question, { ...sampled(1), replies: 3 }))
      expect(all.end.finishReasons).toHaveLength(3)
    }).pipe(Effect.scoped),
  )
})

layer(Layer.empty)("a model with a recurrent state", (it) => {
  it.effect("copies it for several replies", () =>
    Effect.gen(function* () {
      const engine = yield* openToy("qwen35", { seed: 4 })
      const singles = []
      for (let reply = 0; reply < 4; reply++)
        singles.push((yield* generateText(engine, textRequest(question, sampled(reply)))).text)
      for (let repeat = 0; repeat < 2; repeat++) {
        const { deltas } = yield* generateText(engine, textRequest(question, { ...sampled(0), replies: 4 }))
        const texts = singles.map((_, reply) =>
          deltas
            .filter(({ detail }) => (detail?.reply ?? 0) === reply)
            .map(({ text }) => text)
            .join(""),
        )
        expect(texts).toEqual(singles)
      }
    }).pipe(Effect.scoped),
  )
})
